"""Verification: models of every kind pass; any change of what the file says fails."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from confide import (
    ZCDP,
    AdditiveClassifier,
    AdditiveRegressor,
    ApproxDP,
    FileError,
    HuberRegressor,
    KernelSVC,
    Ledger,
    LinearSVC,
    LogisticRegression,
    PrivateSearchCV,
    PureDP,
    Ridge,
    Schema,
    load,
)
from confide.features.forms import ShortenedInNorm
from confide.files import document_text
from confide.report import verification
from confide.report.verification import FAILED, UNCHECKED, VERIFIED, is_verified, plans_again, verify
from confide.training.assumptions import SENTENCES
from tests.report.released import COLUMNS, additive, logistic, of_two_rows, people, schema, with_intervals, without_privacy


def numbers(seed=0, n=600):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, (n, 3))
    return X, X[:, 0] > 0


KINDS = {
    "logistic": lambda: logistic()[0],
    "intervals": with_intervals,
    "curves and interactions": additive,
    "no schema": lambda: LogisticRegression(1.0).fit(*numbers()),
    "gradients": lambda: LogisticRegression(ZCDP(0.1), mechanism="gradient").fit(*numbers()),
    "output": lambda: LogisticRegression(1.0, mechanism="output").fit(*numbers()),
    "three classes": lambda: LogisticRegression(1.0).fit(numbers()[0], np.arange(600) % 3),
    "noisy hinge": lambda: LinearSVC(ApproxDP(0.1, 1e-6), schema=schema()).fit(*people()),
    "sums far from 0": lambda: Ridge(1.0, target_low=8.0, target_high=12.0, intervals=True).fit(
        numbers()[0], 10.0 + numbers()[0][:, 0]
    ),
    "sums": lambda: Ridge(1.0, target_bound=1.0, intervals=True).fit(numbers()[0], numbers()[0][:, 0]),
    "huber": lambda: HuberRegressor(1.0, target_bound=1.0).fit(numbers()[0], numbers()[0][:, 0]),
    "kernel": lambda: KernelSVC(1.0, schema=schema(), n_features=10).fit(*people()),
    "private number of rows": lambda: LogisticRegression(
        1.0, neighbours="add-or-remove-one", n_rows_bounds=(300, 900), max_rows_per_person=2
    ).fit(*numbers()),
    "regression": lambda: AdditiveRegressor(
        1.0, schema=Schema(columns=COLUMNS, target={"column": "y", "low": 0, "high": 1})
    ).fit(people()[0], np.linspace(0, 1, 600)),
    "strengths": lambda: LogisticRegression(ApproxDP(1.0, 1e-6), penalty=[0.3, 7.0, 1.0]).fit(*numbers()),
    "a form": lambda: LogisticRegression(ApproxDP(1.0, 1e-6), penalty=FORM).fit(*numbers()),
    "sums and a form": lambda: Ridge(1.0, target_bound=1.0, penalty=FORM).fit(numbers()[0], numbers()[0][:, 0]),
    "strengths by names": lambda: named(penalty={"b": 3.0}),
    "smooth": lambda: LogisticRegression(1.0, schema=schema(), penalty={"work": "smooth", "age": 3.0}).fit(*people()),
    "smooth beside random features": lambda: AdditiveClassifier(
        ApproxDP(1.0, 1e-6), schema=schema(), penalty="smooth", interactions="all"
    ).fit(*people()),
    "sparse": lambda: LogisticRegression(1.0, schema=schema(), l1_ratio=0.5).fit(*people()),
    "sparse gradients": lambda: LogisticRegression(ZCDP(0.1), schema=schema(), l1_ratio=0.5).fit(*people()),
}
FORM = np.array([[1.0, 0.9, 0.0], [0.9, 4.0, 0.0], [0.0, 0.0, 0.3]])


def named(**parameters):
    """A fit to a frame of numbers, whose columns have names."""
    X, y = numbers()
    return LogisticRegression(ApproxDP(1.0, 1e-6), **parameters).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)


def loaded(model, tmp_path, change=None):
    """The model as its file says, after a change of the file with a new checksum."""
    model.save(tmp_path / "model.json", overwrite=True)
    if change is not None:
        content = json.loads((tmp_path / "model.json").read_text())["content"]
        change(content)
        (tmp_path / "model.json").write_text(document_text(content))
    return load(tmp_path / "model.json")


def outcomes(findings):
    return [finding.outcome for finding in findings]


@pytest.mark.parametrize("kind", KINDS)
def test_the_plan_of_every_kind_is_made_again(kind, tmp_path):
    """From the file alone: nothing fails, and the plan is among what was verified."""
    model = loaded(KINDS[kind](), tmp_path)
    findings = verify(model)
    assert is_verified(findings), [finding for finding in findings if finding.outcome == FAILED]
    assert any("plan was made again" in each.sentence for each in findings if each.outcome == VERIFIED)
    assert plans_again(model)[0].alpha == model.alpha_


def smaller_budget(content):
    content["guarantee"]["budget"]["epsilon"] = 0.1
    content["parameters"]["budget"]["epsilon"] = 0.1


def other_weight(content):
    content["coef"][0][0] += 1e-3


def other_alpha(content):
    content["alpha"] *= 0.5


def fewer_persons(content):
    content["guarantee"]["max_rows_per_person"] = 5


def other_mechanism(content):
    content["guarantee"]["mechanism"] = "output"


def one_sentence_less(content):
    content["guarantee"]["assumptions"].pop(2)


CHANGES = [smaller_budget, other_weight, other_alpha, fewer_persons, other_mechanism, one_sentence_less]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_whoever_changes_the_file_is_found_out(change, tmp_path):
    """Even with a checksum that fits."""
    findings = verify(loaded(logistic()[0], tmp_path, change))
    assert FAILED in outcomes(findings)
    assert not is_verified(findings)


@pytest.mark.parametrize("budget", [PureDP(1.0), ZCDP(0.1)], ids=["noise on the weights", "gradients"])
def test_another_share_of_the_l1_penalty_is_found_out(budget, tmp_path):
    """A half and three quarters of 1/16 are exact, so that alpha is the same to the bit."""
    model = LogisticRegression(budget, alpha=0.0625, l1_ratio=0.5).fit(*numbers())
    assert is_verified(verify(loaded(model, tmp_path)))
    changed = verify(loaded(model, tmp_path, lambda content: content["parameters"].update(l1_ratio=0.75)))
    assert "An l1 penalty has 0.75 of alpha" in next(each.sentence for each in changed if each.outcome == FAILED)


def no_form(content):
    content["parameters"]["penalty"] = None


FORMS = {
    "no form": no_form,
    "another weight": other_weight,
    "a sentence less": lambda content: content["guarantee"]["assumptions"].remove(SENTENCES["penalised"]),
}


@pytest.mark.parametrize("change", FORMS)
def test_whoever_changes_the_form_or_its_weights_is_found_out(change, tmp_path):
    """Of other strengths some have the same plan, and weights may lie on their grid too: these are not checked."""
    model = LogisticRegression(ApproxDP(1.0, 1e-6), penalty=[1.0, 3.0, 1.0], alpha=0.1).fit(*numbers())
    assert is_verified(verify(loaded(model, tmp_path)))
    assert FAILED in outcomes(verify(loaded(model, tmp_path, FORMS[change])))


SHORTENED = {
    "another length": lambda content: content["row_bound"].update(norm=0.9 * content["row_bound"]["norm"]),
    "another form": lambda content: content["row_bound"]["form"]["scales"].__setitem__(0, 2.0),
    "another bound before": lambda content: content["row_bound"].update(inner={"kind": "ball", "norm": 1.0}),
    "no length": lambda content: content.update(row_bound=content["row_bound"]["inner"]),
}


@pytest.mark.parametrize("change", SHORTENED)
def test_whoever_changes_how_rows_are_shortened_in_the_norm_is_found_out(change, tmp_path):
    """Rows to be scored are shortened as the plan says, and the file must say so too."""
    curve = Schema(columns={**COLUMNS, "age": {"low": 17, "high": 90, "knots": 9}}, target=schema().target)
    model = LogisticRegression(ApproxDP(0.5, 1e-6), schema=curve, penalty={"age": "smooth", "work": "smooth"})
    model.fit(*people())
    assert type(model._row_bound) is ShortenedInNorm
    assert is_verified(verify(loaded(model, tmp_path)))
    assert FAILED in outcomes(verify(loaded(model, tmp_path, SHORTENED[change])))


@pytest.mark.parametrize(("name", "value"), [("_MOST_DOUBT", -1.0), ("_MOST_CHANCE", 1e-5)])
def test_weights_are_not_compared_with_a_grid_that_rounding_hides(name, value, monkeypatch):
    """Where doubts are too large, or other weights may pass, the grid is not verified, and nobody is accused."""
    model = named(penalty=FORM)
    assert any("is a multiple of" in each.sentence for each in verify(model) if each.outcome == VERIFIED)
    monkeypatch.setattr(verification, name, value)
    (finding,) = (each for each in verify(model) if "multiple" in each.sentence)
    assert finding.outcome == UNCHECKED
    assert is_verified(verify(model))


def test_no_guarantee_is_no_success(tmp_path):
    findings = verify(loaded(without_privacy(), tmp_path))
    assert not is_verified(findings)
    assert any("no guarantee" in each.sentence for each in findings if each.outcome == FAILED)


def test_the_ledger_must_hold_the_charge():
    model, ledger = logistic.__wrapped__()
    assert any("Charge 1" in each.sentence for each in verify(model, ledger=ledger) if each.outcome == UNCHECKED)
    ledger = Ledger(limit=4.0)
    model = LogisticRegression(1.0, schema=schema(), ledger=ledger).fit(*people())
    ledger.note(1, {"sha256": "ab" * 32})
    assert not is_verified(verify(model, ledger=ledger, sha256="cd" * 32))
    found = verify(model, ledger=ledger, sha256="ab" * 32)
    assert any("Charge 1" in each.sentence for each in found if each.outcome == VERIFIED)
    assert not is_verified(verify(model, ledger=Ledger(limit=4.0)))


def test_a_ledger_for_persons_with_fewer_rows_is_named():
    """The charge is there, and nothing is forged; but what a person with two rows pays is not known."""
    model, ledger = of_two_rows()
    findings = verify(model, ledger=ledger)
    assert is_verified(findings)
    assert any("at most 1 row pay" in each.sentence for each in findings if each.outcome == UNCHECKED)


def test_the_schema_must_be_the_agreed_one():
    """Knots that were chosen are no difference; another bound is."""
    chosen = [each.sentence for each in verify(additive(), schema=schema()) if each.outcome == VERIFIED]
    assert any("has this schema" in sentence for sentence in chosen)
    exact = verify(logistic()[0], schema=schema())
    assert any("exactly this schema" in each.sentence for each in exact if each.outcome == VERIFIED)
    other = Schema(columns=COLUMNS | {"age": {"low": 0, "high": 90}}, target=schema().target)
    assert not is_verified(verify(logistic()[0], schema=other))
    assert not is_verified(verify(LogisticRegression(1.0).fit(*numbers()), schema=schema()))


def test_a_schema_that_differs_in_units_alone_is_the_same(tmp_path):
    model, _ = logistic()
    described = model.schema.to_dict()
    number = next(name for name, column in described["columns"].items() if "low" in column)
    described["columns"][number]["unit"] = "years"
    findings = verify(model, schema=Schema.from_dict(described))
    assert any("has this schema" in each.sentence for each in findings if each.outcome == VERIFIED)
    described["columns"][number]["high"] += 1
    assert not is_verified(verify(model, schema=Schema.from_dict(described)))


def test_a_schema_without_the_atoms_of_the_model_or_without_their_release_is_another_one():
    """No fit chooses atoms, so they are compared."""
    plain = schema().to_dict()
    number = next(name for name, column in plain["columns"].items() if "low" in column)

    def with_atoms(**more):
        column = plain["columns"][number] | {"atoms": [plain["columns"][number]["low"] + 1]} | more
        return Schema.from_dict(plain | {"columns": plain["columns"] | {number: column}})

    model = LogisticRegression(1.0, schema=with_atoms()).fit(*people())
    assert is_verified(verify(model, schema=with_atoms()))
    assert not is_verified(verify(model, schema=schema()))
    stated = {"columns": [number], "epsilon": 1.0, "neighbours": "replace-one"}
    assert not is_verified(verify(model, schema=with_atoms(released_atoms=stated)))


def test_another_version_is_named_where_plans_differ(tmp_path):
    findings = verify(loaded(logistic()[0], tmp_path, other_alpha), written_by="0.0.1")
    assert any("written by confide 0.0.1" in each.sentence for each in findings if each.outcome == FAILED)


def leaves(value, path=()):
    """The paths of all values in a document that hold no other values. Of a long list, the first two places and the last."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list) and value:
        for place in sorted({0, min(1, len(value) - 1), len(value) - 1}):
            yield from leaves(value[place], (*path, place))
        yield (*path, len(value))
    else:
        yield path


def forgeries(value):
    """Other values of the same type, and values of other types."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        return [f"{value} x", ""]
    if isinstance(value, int | float):
        return [
            value + 1,
            1.5 * value + 1e-3 if isinstance(value, float) else value + 2,
            *([4 * value] if value else []),
            -3,
            True,
        ]
    return [2, "x"] if value is None else [None, [1]]


def forged(content, path):
    """The content with each forgery at one place. The place behind the last of a list stands for one more like the last."""
    *parents, last = path
    for change in (None,) if isinstance(last, int) and last == len(at(content, parents)) else forgeries(at(content, path)):
        copy = json.loads(json.dumps(content))
        holder = at(copy, parents)
        if isinstance(last, int) and last == len(holder):
            holder.append(f"{holder[-1]} x" if isinstance(holder[-1], str) else holder[-1])
        else:
            holder[last] = change
        yield copy


def at(content, path):
    for key in path:
        content = content[key]
    return content


def searched(budget=1.0, **more):
    frame, y = numbers(n=2000)
    search = PrivateSearchCV(LogisticRegression(classes=[False, True]), {"alpha": [0.01, 0.1]}, budget=budget, **more)
    return search.fit(frame, y).best_estimator_


def several_rows_in_a_ledger():
    ledger = Ledger(limit=9.0, max_rows_per_person=2)
    first = LogisticRegression(1.0, schema=schema(), max_rows_per_person=2, ledger=ledger).fit(*people())
    return first.refit(*people(), budget=2.0)


def weighted(**more):
    X, y = numbers()
    model = LogisticRegression(
        20.0, max_sample_weight=2.0, class_weight={False: 1.0, True: 2.0}, classes=[False, True], **more
    )
    return model.fit(X, y, sample_weight=np.linspace(0.1, 2.0, len(y)))


FORGED = {
    name: KINDS[name]
    for name in (
        "logistic",
        "intervals",
        "no schema",
        "three classes",
        "kernel",
        "private number of rows",
        "regression",
        "sums far from 0",
    )
} | {
    "a search": lambda: searched(ApproxDP(1.0, 1e-6), method="repeated"),
    "a search of parts": lambda: searched(method="exponential"),
    "a prior in a ledger": several_rows_in_a_ledger,
    "weights": lambda: weighted(inference_share=0.3),
    "columns of interest": lambda: LogisticRegression(100.0, schema=schema(), interest=["work"], risk_differences=True).fit(
        *people()
    ),
    "sums": lambda: Ridge(1.0, target_bound=1.0, intervals=True, alpha=0.5).fit(numbers()[0], numbers()[0][:, 0]),
    "a strength": lambda: named(penalty={"b": 3.0}, alpha=0.1),
    "a form": KINDS["a form"],
    "smooth": KINDS["smooth"],
    "sparse gradients": KINDS["sparse gradients"],
    "monotone": lambda: AdditiveClassifier(1.0, schema=schema(), knots=2, monotone={"age": "up"}).fit(*people()),
}
NEVER_BELIEVED = (
    "guarantee.budget", "guarantee.assumptions", "guarantee.mechanism", "guarantee.neighbours", "guarantee.void", "alpha",
    "guarantee.max_rows_per_person", "parameters.budget", "coefficient_names", "n_features_in",
)  # fmt: skip


@pytest.mark.parametrize("kind", FORGED)
def test_every_part_of_a_file_is_made_again_or_listed_as_not_checked(kind, tmp_path):
    """A value that is changed, with the right checksum, is refused or found out, or in a part that is not checked."""
    model = loaded(FORGED[kind](), tmp_path)
    findings, path = verify(model), tmp_path / "model.json"
    assert is_verified(findings), [each.sentence for each in findings if each.outcome == FAILED]
    listed = [part for finding in findings for part in finding.parts]
    assert not any(f"{name}.".startswith(f"{part}.") for name in NEVER_BELIEVED for part in listed)
    content, believed = json.loads(path.read_text())["content"], []
    for place in leaves(content):
        named = ".".join(str(key) for key in place if isinstance(key, str))
        if any(f"{named}.".startswith(f"{part}.") for part in listed):
            continue
        for forgery in forged(content, place):
            path.write_text(document_text(forgery))
            try:
                found = verify(load(path))
            except FileError:
                continue
            if is_verified(found):
                believed.append(named)
    assert not believed, "\n".join(believed)


def test_a_strength_on_whose_grid_the_weights_lie_as_well_is_listed_as_not_checked(tmp_path):
    """Four times the strength of a column has a grid of half the step, and every released weight lies on it too."""
    model = loaded(
        named(penalty={"b": 3.0}, alpha=0.1), tmp_path, lambda content: content["parameters"]["penalty"].update(b=12.0)
    )
    findings = verify(model)
    assert any("parameters.penalty" in each.parts and "four times as much" in each.sentence for each in findings)
    assert not any("parameters.penalty" in each.parts for each in verify(logistic()[0]))


IMPOSSIBLE = {
    "attempts": [0, -3],
    "learned_steps": [["Nothing; the regulator certified it"], [""]],
    "n_rows": [[0, 0], [600, 599], [-600, 600]],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in IMPOSSIBLE.items() for value in values])
def test_a_file_that_says_what_no_fit_has_is_not_read(name, value, tmp_path):
    """Sentences are written from these facts, so a number below 1 or a name that is a sentence would stand in them."""
    with pytest.raises(FileError):
        loaded(logistic()[0], tmp_path, lambda content: content["guarantee"]["circumstances"].update({name: value}))


def test_an_identity_of_a_ledger_is_no_sentence(tmp_path):
    with pytest.raises(FileError):
        loaded(
            logistic()[0], tmp_path, lambda content: content["guarantee"]["circumstances"]["ledger"].update(identity="a b.")
        )


def test_what_is_believed_of_a_fit_is_named():
    """Seeds, attempts, searches and earlier steps change what a guarantee is worth, and no file proves them."""
    sentences = " ".join(each.sentence for each in verify(logistic()[0]) if each.outcome == UNCHECKED)
    for words in ("one fit", "noise that no seed fixed", "attempt 1 under its charge", "learned from the rows: none"):
        assert words in sentences


def test_a_word_in_a_label_spares_no_check(tmp_path):
    """A sentence on a search has the word "candidate", and so may a label; the facts of the file decide."""
    frame, y = people()
    named = Schema(columns=COLUMNS, target={"column": "income", "positive": "candidate", "negative": "low"})
    model = LogisticRegression(1.0, schema=named).fit(frame, np.where(y == "high", "candidate", "low"))
    assert is_verified(verify(loaded(model, tmp_path)))
    assert not is_verified(verify(loaded(model, tmp_path, smaller_budget)))


def invented_search(content):
    smaller_budget(content)
    search = {"method": "exponential", "candidates": 2, "trained_on": 300, "mean_tries": None}
    content["guarantee"]["circumstances"]["search"] = search | {"budget_of_try": content["guarantee"]["budget"]}


def no_facts(content):
    content["guarantee"]["circumstances"] = None


def one_sentence_more(content):
    content["guarantee"]["assumptions"].append("It was certified by the regulator.")


def swapped_classes(content):
    content["classes"].reverse()


def renamed_class(content):
    content["classes"][0] = "healthy"


def wider_rows(content):
    content["row_bound"]["scales"][0] *= 2.0


@pytest.mark.parametrize(
    "change", [invented_search, no_facts, one_sentence_more, swapped_classes, renamed_class, wider_rows]
)
def test_what_a_file_adds_or_leaves_out_is_found_out(change, tmp_path):
    """Whether a schema is given or not."""
    changed = loaded(logistic()[0], tmp_path, change)
    assert not is_verified(verify(changed))
    assert not is_verified(verify(changed, schema=schema()))


@pytest.mark.parametrize("method", ["repeated", "exponential"])
def test_a_search_is_planned_again(method, tmp_path):
    """With the budget, the rows and the tries that the file states; others do not lead to its weights."""
    model = searched(method=method)
    findings = verify(loaded(model, tmp_path))
    assert any("plan was made again" in each.sentence for each in findings if each.outcome == VERIFIED)
    assert any("among 2 candidates" in each.sentence for each in findings if each.outcome == UNCHECKED)

    def forged_budget(content):
        smaller_budget(content)
        content["guarantee"]["circumstances"]["search"]["budget_of_try"]["epsilon"] *= 0.1

    assert not is_verified(verify(loaded(model, tmp_path, forged_budget)))
