"""The proof pages speak of the code as it is: hashes match, and no formula is left without a page."""

from __future__ import annotations

import ast

import pytest
from scripts import proof_hashes

CLAIMS = {page.name: proof_hashes.claims(page.read_text(encoding="utf-8")) for page in proof_hashes.PAGES}
PROVEN = {name for claims in CLAIMS.values() for name, _ in claims}

FORMULAS = (
    "accounting.filter_choice",
    "accounting.filters",
    "privacy.budgets",
    "privacy.certificate",
    "privacy.counts",
    "privacy.events",
    "privacy.gaussian",
    "privacy.gradient",
    "privacy.lattice",
    "privacy.loss_ends",
    "privacy.moments",
    "privacy.noise",
    "privacy.objective_account",
    "privacy.objective_perturbation",
    "privacy.output_perturbation",
    "privacy.selection",
    "privacy.shapes",
    "privacy.sufficient_statistics",
)
"""Trusted modules whose public functions hold formulas."""
CLIPPING = (
    "group_bounds.GroupBound.clip",
    "group_bounds.GroupBound.l2_norm",
    "row_bounds.BallBound.clip",
    "row_bounds.BallBound.l2_norm",
    "row_bounds.norm_with_intercept",
)

EXCEPTIONS = {
    # What a plan shows.
    "confide.privacy.gradient.Descent.to_dict",
    "confide.privacy.output_perturbation.OutputPerturbation.name",
    # The expected size of noise, on which no guarantee rests.
    "confide.privacy.shapes.Mapped.solid_mean_square",
    # Reading, checking and writing of values.
    "confide.privacy.budgets.Neighbours.parse",
    "confide.privacy.budgets._Amounts.is_private",
    "confide.privacy.budgets._Amounts.of_sum",
    "confide.privacy.budgets._Amounts.to_dict",
    "confide.privacy.budgets.as_budget",
    "confide.privacy.budgets.budget_from_dict",
    "confide.privacy.events.Event.to_dict",
    # What is shown of a total or said of a refusal, and the choice of how to add; what is admitted does not depend on them.
    "confide.accounting.filters.ConcentratedFilter.remaining",
    "confide.accounting.filters.ConcentratedFilter.spent",
    "confide.accounting.filters.RenyiFilter.remaining",
    "confide.accounting.filters.RenyiFilter.spent",
    "confide.accounting.filters.SumFilter.remaining",
    "confide.accounting.filters.as_float",
    "confide.accounting.filters.remainder",
    "confide.accounting.filters.SumFilter.spent",
    "confide.accounting.filter_choice.accounting_of",
    "confide.accounting.filter_choice.new_header",
    "confide.accounting.filter_choice.unknown_accounting",
    "confide.accounting.filter_choice.why_foreign",
}


def path_of(module):
    """The file of a module."""
    return proof_hashes.SOURCE / "confide" / f"{module.replace('.', '/')}.py"


def public_functions(module):
    """Functions and methods without a leading underscore, but not those of protocols, which compute nothing."""
    tree = ast.parse(path_of(module).read_text(encoding="utf-8"))
    protocols = {
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef) and "Protocol" in {ast.unparse(base) for base in node.bases}
    }
    return {
        f"confide.{module}.{name}"
        for name, node in proof_hashes.definitions(tree).items()
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and name.split(".")[0] not in protocols
    }


def private_parts_used_by(name):
    """Private functions, private methods and constants, of the same module, that a function reads."""
    path, inner = proof_hashes.located(name)
    known = proof_hashes.definitions(ast.parse(path.read_text(encoding="utf-8")))
    module, owner = name.removesuffix(f".{inner}"), inner.rpartition(".")[0]
    used = set()
    for node in ast.walk(known[inner]):
        if isinstance(node, ast.Name) and node.id in known and (node.id.startswith("_") or node.id.isupper()):
            used.add(node.id)
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            method = f"{owner}.{node.attr}"
            used |= {method} if isinstance(known.get(method), ast.FunctionDef) else set()
    return {f"{module}.{part}" for part in used}


@pytest.mark.parametrize("page", CLAIMS)
def test_every_page_was_read_beside_the_code_as_it_is(page):
    """Each hash of a page is that of today's code."""
    assert CLAIMS[page], f"{page} does not say what it proves"
    changed = [name for name, written in CLAIMS[page] if proof_hashes.digest(name) != written]
    assert not changed, (
        f"{', '.join(changed)} changed: re-read the page {page}, then run python scripts/proof_hashes.py --write"
    )


@pytest.mark.parametrize("module", FORMULAS)
def test_every_public_formula_is_proven_on_a_page(module):
    """What is not, is on a short list with its reason."""
    functions = public_functions(module)
    assert functions, "the scan finds nothing"
    assert functions - PROVEN - EXCEPTIONS == set()


def test_clipping_is_proven():
    """The bounds that all rows obey."""
    assert {f"confide.erm.{name}" for name in CLIPPING} <= PROVEN


def test_the_seal_is_proven():
    """The one formula beside the protocols of mechanisms."""
    assert "confide.privacy.mechanism.tolerance_and_radius" in PROVEN


def test_no_exception_is_needless():
    """Each exception is a function that exists and that no page proves."""
    assert set().union(*map(public_functions, FORMULAS)) - PROVEN >= EXCEPTIONS


@pytest.mark.parametrize("module", [*FORMULAS, "erm.group_bounds", "erm.row_bounds"])
def test_what_a_proven_function_rests_on_is_proven_too(module):
    """Private functions and constants of its module: else a changed margin would leave the hashes as they are."""
    proven = {name for name in PROVEN if proof_hashes.located(name)[0] == path_of(module)}
    assert set().union(*map(private_parts_used_by, proven)) - PROVEN == set()


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


@pytest.mark.parametrize("rest", ["", " sha256:12345", " sha256:000000000000 and more", " sha256:00000000000G", " 000000000000", "()"])
def test_an_entry_that_binds_nothing_is_refused(rest):
    """A name without a whole hash would stand on a page for ever, whatever its function became."""
    name = "confide.privacy.gaussian.gradient_shift"
    whole = f"    Proves: {name} sha256:000000000000\n"
    assert proof_hashes.claims(f"Text.\n\n{whole}{whole}") == [(name, "000000000000")] * 2
    for indent in ("    ", "  ", ""):
        with pytest.raises(ValueError, match="bind nothing"):
            proof_hashes.claims(f"Text.\n\n{whole}{indent}Proves: {name}{rest}{'' if indent or rest else ' x'}\n")


def test_writing_renews_hashes_and_nothing_else():
    """The rest of a page stays as it is."""
    name = "confide.privacy.gaussian.gradient_shift"
    page = f"# A page\n\nText, sha256:000000000000.\n\n    Proves: {name} sha256:000000000000\n"
    head, old, tail = page.rpartition("000000000000")
    assert proof_hashes.renewed(page) == head + proof_hashes.digest(name) + tail
    assert proof_hashes.claims(page) == [(name, old)]
