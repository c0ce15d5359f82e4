"""The proof pages speak of the code as it is: hashes match, and nothing that a guarantee rests on is left without a page."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache

import pytest
from scripts import proof_hashes

CLAIMS = {page.name: proof_hashes.claims(page.read_text(encoding="utf-8")) for page in proof_hashes.PAGES}
PROVEN = {name for claims in CLAIMS.values() for name, _ in claims}

TRUSTED = ("accounting", "erm", "privacy")
"""Rooms of which everything is on a page, but for what stands in `NOT_PROVEN`."""
MODULES = {
    ".".join(path.relative_to(proof_hashes.SOURCE / "confide").with_suffix("").parts)
    for path in (proof_hashes.SOURCE / "confide").rglob("*.py")
}
READ_BESIDE = (
    *("compiled", "data.arrays", "data.partitions", "evaluations", "features", "models", "second_account", "solvers"),
    "training.charge",
)
"""What the proven functions of all rooms read of these is on a page too, but for what stands in `NOT_PROVEN`."""

NOT_PROVEN = {
    "names, and the texts and JSON forms of objects": (
        "*.name",
        "*Plan.mechanism",
        "*.title",
        "*.version",
        "*.__slots__",
        "*.__all__",
        "*.__repr__",
        "*.__str__",
        "*.blocks",
        "accounting.batches.Shared.to_frame",
        "accounting.batches._cell",
        "erm.*.to_dict",
        "privacy.*Plan.to_dict",
        "privacy.gradient.Descent.to_dict",
        "features.checks.BoundsRelease.*",
    ),
    "what messages say, and why a plan is as it is": (
        "*Plan.why",
        "*Plan.grid_sentence",
        "privacy.*.of_grid",
        "privacy.budgets.shown_amounts",
        "privacy.*.pays_for",
        "privacy.*.line",
        "privacy.gradient.GradientPlan.longest_gradient",
        "privacy.gradient.GradientPlan.n_passes",
        "privacy.*.document",
        "privacy.*.sentence",
        "*Plan.reasons",
        "privacy.curvature.too_inexact",
        "privacy.mechanism.ANOTHERS",
        "privacy.mechanism.NO_OBJECTIVE",
        "accounting.*_storage._CAUSES",
        "accounting.*_storage._explained",
        "data.partitions.NO_ROWS",
        "data.partitions.computed_by_cluster",
    ),
    "names of types": (
        "erm.coded_rows.Intervals",
        "erm.objective.Source",
        "erm.objective.Objectives",
        "training.charge.Released",
        "*.Layout",
        "*.Query",
    ),
    "the expected size of noise, and of what is made of noisy numbers": (
        "*Plan.*deviation*",
        "privacy.shapes.Mapped.solid_mean_square",
        "privacy.mechanism.Plan.added_l2",
        "privacy.*Plan.*_norm",
        "privacy.*Plan.largest_slope",
        "privacy.gradient.GradientPlan.walked",
        "privacy.mechanism.Plan.expected_distance",
        "*Plan.alpha",
        "privacy.tables.deviation_of_moments",
        "privacy.curvature.deviations_of_curvature",
    ),
    "parts of a plan that are absent, or 0": (
        "privacy.mechanism.Plan.pairs",
        "privacy.mechanism.Plan.seal_share",
        "privacy.mechanism.Plan.intervals",
        "privacy.*Plan.parts",
        "privacy.mechanism.Plan.centring",
        "privacy.mechanism.Plan.scaling",
        "privacy.mechanism.Plan.atoms",
        "privacy.mechanism.Plan.matching",
        "privacy.mechanism.Plan.perturbs_objective",
        "privacy.noisy_sum.SumQuery.before",
        "privacy.noisy_sum.Before",
        "privacy.noisy_sum.SumQuery.after",
        "privacy.*Plan.descent",
        "*Plan.minimises",
        "*Plan.weights_on_grid",
        *(
            f"privacy.sufficient_statistics.StatisticsPlan.{part}"
            for part in ("l2", "prior", "forecast", "intervals", "l1_ratio")
        ),
        "privacy.noisy_sum.SumPlan.noise",
        "privacy.sufficient_statistics.LeastSquares.penalty",
        "privacy.noisy_sum.SumPlan.radius",
        "privacy.noisy_sum.SumPlan.share",
        "erm.penalties.Penalty.has_levels",
    ),
    "values, curvatures and samples for solvers, and which solver comes first: nobody has to believe them": (
        "erm.*losses.*.value",
        "erm.*losses.*.second_derivative",
        "erm.objective.Objective._add_curvatures",
        "erm.objective.Objective._values",
        "erm.penalties.Penalty.value",
        "erm.objective._STEP",
        "erm.penalties.values_of",
        "erm.row_bounds.CentredRows.column_squares",
        "erm.row_bounds.CentredRows.dense",
        "data.arrays.most_in_sample",
        "data.arrays.sampled_positions",
        "solvers.fallback._usual_method",
        "solvers.sampled.solved_over_made_rows",
        "erm.objective.on_part",
        "erm.objective.mean_of",
    ),
    "trials of the kernel, which are no part of a proof": (
        "compiled.sums.tried",
        "compiled.sums._TRIALS",
        "compiled.sums._*_agree",
    ),
    "the reading of cells, checks before the charge, and names of columns and classes": (
        "features.cells.labels_of",
        "features.cells.entries_at",
        "features.checks.AtomsRelease.__post_init__",
        "features.fourier.CurvesAndFeatures.__post_init__",
        "features.schema.Schema.__init__",
        "features.table.RawTable.of",
        "models.model.ShownClass.of",
        "models.model.predicted_number",
        "training.charge.before_charge",
        "training.charge.refuse_undivided",
    ),
    "what follows from released counts and public facts, whatever it is": ("features.atoms.atoms_of",),
    "memory": ("erm.clipped_rows.ClippedRows.n_bytes", "data.arrays._KEPT_BYTES"),
    "what is shown of a ledger; what is admitted does not depend on it": (
        "accounting.attempts.Attempts.charges",
        "accounting.batches._OF_CHARGE",
        "accounting.batches.charges_of",
        "accounting.batches.listed_charges",
        "accounting.filters.CURRENCIES",
        "accounting.filters.costs_of",
        "accounting.filters.listed",
        "accounting.filters.*.spent",
        "accounting.filters.*.remaining",
        "accounting.ledger.Ledger.unfinished",
        "accounting.ledger.Ledger.spent",
        "accounting.ledger.Ledger.remaining",
        "accounting.ledger.Ledger.entries",
        "accounting.records.current_user",
        "accounting.batches.spending_of",
    ),
}
"""What no page proves, by the reason."""


@cache
def text_of(module: str) -> str:
    """The text of a module of the package, such as "privacy.noise"."""
    path = proof_hashes.SOURCE / "confide" / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file.read_text(encoding="utf-8")


@cache
def tree_of(module: str) -> ast.Module:
    """Its syntax tree."""
    return ast.parse(text_of(module))


def modules_of(room: str) -> list[str]:
    """The modules of a room, or the one module."""
    path = proof_hashes.SOURCE / "confide" / room.replace(".", "/")
    if not path.is_dir():
        return [room]
    return sorted(f"{room}.{file.stem}" for file in path.glob("*.py") if file.stem != "__init__")


@cache
def definitions_of(module: str) -> dict[str, ast.stmt]:
    """Functions, methods and constants of a module, without those of protocols and without what has no body."""
    tree = tree_of(module)
    protocols = {
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef) and "Protocol" in {ast.unparse(base).split("[")[0] for base in node.bases}
    }
    found = proof_hashes.definitions_in(text_of(module))
    return {name: node for name, node in found.items() if name.split(".")[0] not in protocols and not is_abstract(node)}


def is_abstract(node: ast.stmt) -> bool:
    """Whether a function computes nothing."""
    return isinstance(node, ast.FunctionDef) and "abstractmethod" in {ast.unparse(each) for each in node.decorator_list}


def is_bound(module: str, name: str) -> bool:
    """Whether a page proves a definition, or another name that the same statement gives a value."""
    known = definitions_of(module)
    return any(f"confide.{module}.{other}" in PROVEN for other, node in known.items() if node is known[name])


def is_excepted(name: str) -> bool:
    """Whether a name is one of `NOT_PROVEN`."""
    return any(fnmatchcase(name, pattern) for patterns in NOT_PROVEN.values() for pattern in patterns)


@cache
def imports_of(module: str) -> dict[str, tuple[str, str]]:
    """For each name that a module imports from the package: the module that it comes from, and its name there."""
    return {
        alias.asname or alias.name: (node.module.removeprefix("confide").lstrip("."), alias.name)
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "confide"
        for alias in node.names
    }


@cache
def references() -> frozenset[tuple[str, str]]:
    """(module, definition) of all that proven functions read."""
    return frozenset(reference for name in PROVEN for reference in references_of(name))


def references_of(name: str) -> Iterator[tuple[str, str]]:
    """(module, definition) of what a proven function of Python reads by name, or of its own object or class."""
    path, inner = proof_hashes.located(name)
    if path.suffix != ".py":
        return
    module = name.removeprefix("confide.").removesuffix(f".{inner}")
    owner = inner.rpartition(".")[0]
    for node in proof_hashes.computing_nodes(proof_hashes.definitions_in(text_of(module))[inner]):
        if isinstance(node, ast.Name):
            yield from defined(module, node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            of = owner if node.value.id in ("self", "cls") else node.value.id
            yield from defined(module, f"{of}.{node.attr}")


def defined(module: str, name: str) -> Iterator[tuple[str, str]]:
    """Where what a module calls so is defined in the package, if it is; of a class what makes its objects."""
    first, _, attribute = name.partition(".")
    if first in imports_of(module):
        home, own = imports_of(module)[first]
        inside = f"{home}.{own}".lstrip(".")
        if inside in MODULES:
            yield from defined(inside, attribute)
        elif home:
            yield from defined(home, f"{own}.{attribute}" if attribute else own)
        return
    known = definitions_of(module)
    for found in (name, f"{name}.__post_init__", f"{name}.__init__"):
        if found in known:
            yield module, found


@pytest.mark.parametrize("page", CLAIMS)
def test_every_page_was_read_beside_the_code_as_it_is(page):
    """Each hash of a page is that of today's code."""
    assert CLAIMS[page], f"{page} does not say what it proves"
    changed = [name for name, written in CLAIMS[page] if proof_hashes.digest(name) != written]
    assert not changed, (
        f"{', '.join(changed)} changed: re-read the page {page}, then run python scripts/proof_hashes.py --write"
    )


@pytest.mark.parametrize("module", [module for room in TRUSTED for module in modules_of(room)])
def test_everything_in_a_trusted_room_is_on_a_page(module):
    """Functions, methods and constants, private ones too: else a changed margin would leave the hashes as they are."""
    known = definitions_of(module)
    assert known, "the scan finds nothing"
    assert {
        f"{module}.{name}" for name in known if not is_bound(module, name) and not is_excepted(f"{module}.{name}")
    } == set()


def test_what_a_proven_function_reads_elsewhere_is_proven_too():
    """In the rooms that hold formulas beside other things."""
    elsewhere = {(module, name) for module, name in references() if module.startswith(READ_BESIDE)}
    assert len(elsewhere) > 100, "the scan finds too little"
    left = {f"{module}.{name}" for module, name in elsewhere if not is_bound(module, name)}
    assert {name for name in left if not is_excepted(name)} == set()


def test_no_exception_is_needless():
    """Each exception stands for something that exists and that no page proves."""
    modules = [module for room in (*TRUSTED, *READ_BESIDE) for module in modules_of(room)]
    unbound = [f"{module}.{name}" for module in modules for name in definitions_of(module) if not is_bound(module, name)]
    for reason, patterns in NOT_PROVEN.items():
        for pattern in patterns:
            assert any(fnmatchcase(name, pattern) for name in unbound), f"{pattern} ({reason})"


def test_the_scan_sees_what_theorems_rest_on():
    """No pattern of the exceptions takes a formula, and what is read through an import is found."""
    for formula in ("privacy.gaussian.gaussian_delta", "privacy.noise.Entropy.laplace", "erm.row_bounds.BallBound.clip"):
        assert not is_excepted(formula)
    for reference in ("features.codes.HAT_HEIGHT", "compiled.loading.is_plain", "models.scores.favoured"):
        module, _, name = reference.rpartition(".")
        assert (module, name) in references()
        assert is_bound(module, name)


CODE = '''
MARGIN = 2.0

class Noise:
    """A class."""
    size: float = 1.0

    def rate(self, epsilon: float) -> float:
        """Rounded down."""
        rate: float = epsilon / 2.0  # half
        return rate * (1.0 - 2.0**-40)
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # half", "  # a half, since a row is replaced"),
        ('"""Rounded down."""', '"""Another docstring."""'),
        ("epsilon: float) -> float", "epsilon)"),
        ("rate: float =", "rate ="),
        ("epsilon / 2.0", "(epsilon / 2.0)"),
        ('    """A class."""\n', "\n\n"),
        ("MARGIN = 2.0", "MARGIN = 3.0"),
    ],
)
def test_a_hash_ignores_what_does_not_compute(old, new):
    """Comments, docstrings, annotations, layout, and other definitions."""
    assert old in CODE
    assert proof_hashes.digest_in(CODE.replace(old, new), "Noise.rate") == proof_hashes.digest_in(CODE, "Noise.rate")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("Noise.rate", "2.0**-40", "2.0**-41"),
        ("Noise.rate", "epsilon / 2.0", "epsilon / 2"),
        ("Noise.rate", "epsilon / 2.0", "epsilon * 2.0"),
        ("Noise.rate", "1.0 - 2.0", "1.0 + 2.0"),
        ("Noise.rate", "(self, epsilon", "(self, delta, epsilon"),
        ("Noise.size", "float = 1.0", "float = 1.5"),
        ("MARGIN", "2.0", "2.5"),
    ],
)
def test_a_hash_sees_what_computes(name, old, new):
    """Constants, operators, arguments, and constants of modules and classes."""
    assert proof_hashes.digest_in(CODE.replace(old, new), name) != proof_hashes.digest_in(CODE, name)


C_CODE = """
#define HALF(x) ((x) / 2)

/* Twice a number. */
static INLINE double NAME(doubled)(double x, int times)
{
    /* By addition. */
    for (int i = 0; i < times; i++) {
        x = x + x;
    }
    return x;
}

int other(void)
{
    return NAME(doubled)(1.0, 1) > 1.0;
}
"""


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        ("By addition", "Again", False),
        ("x + x", "x  +\n x", False),
        ("x + x", "x * x", True),
        ("int times", "long times", True),
    ],
)
def test_a_hash_of_a_c_function_sees_what_computes(old, new, seen):
    """Comments and layout do not count; another function of the file does not either."""
    elsewhere, digest = C_CODE.replace("> 1.0", "> 2.0"), proof_hashes.digest_in_c
    assert (digest(C_CODE.replace(old, new), "doubled") != digest(C_CODE, "doubled")) == seen
    assert digest(elsewhere, "doubled") == digest(C_CODE, "doubled")
    assert digest(elsewhere, "other") != digest(C_CODE, "other")
    assert digest(C_CODE.replace("/ 2", "/ 3"), "HALF") != digest(C_CODE, "HALF") == digest(elsewhere, "HALF")
    with pytest.raises(LookupError):
        digest(C_CODE, "tripled")


def test_a_proof_of_nothing_is_refused():
    """A name that the code does not know, or no longer knows."""
    for name in ("confide.privacy.gaussian.no_such_function", "confide.privacy.no_such_module.function", "nothing"):
        with pytest.raises(LookupError):
            proof_hashes.digest(name)


@pytest.mark.parametrize(
    "rest", ["", " sha256:12345", " sha256:000000000000 and more", " sha256:00000000000G", " 000000000000", "()"]
)
def test_an_entry_that_binds_nothing_is_refused(rest):
    """A name without a whole hash would stand on a page for ever, whatever its function became."""
    name = "confide.privacy.gaussian.gradient_shift"
    whole = f"    Proves: {name} sha256:000000000000\n"
    assert proof_hashes.claims(f"Text.\n\n{whole}{whole}") == [(name, "000000000000")] * 2
    for indent in ("    ", "  ", ""):
        with pytest.raises(ValueError, match="bind nothing"):
            proof_hashes.claims(f"Text.\n\n{whole}{indent}Proves: {name}{rest}{'' if indent or rest else ' x'}\n")


def test_writing_adds_the_hash_of_a_name_that_has_none():
    """A name alone is what people write; everything else stays as it is."""
    name = "confide.privacy.gaussian.gradient_shift"
    page = f"# A page\n\n    Proves: {name}\n    Proves: {name} and more\n"
    assert proof_hashes.completed(page) == page.replace(f"{name}\n", f"{name} sha256:{'0' * 12}\n")
    assert proof_hashes.claims(proof_hashes.completed(f"    Proves: {name}\n")) == [(name, "0" * 12)]


def test_writing_renews_hashes_and_nothing_else():
    """The rest of a page stays as it is."""
    name = "confide.privacy.gaussian.gradient_shift"
    page = f"# A page\n\nText, sha256:000000000000.\n\n    Proves: {name} sha256:000000000000\n"
    head, old, tail = page.rpartition("000000000000")
    assert proof_hashes.renewed(page) == head + proof_hashes.digest(name) + tail
    assert proof_hashes.claims(page) == [(name, old)]
