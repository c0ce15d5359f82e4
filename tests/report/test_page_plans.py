"""The page of a plan: its figures are those of the plans, refusals say why, and nothing is asked of any network."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from confide import ApproxDP, HuberRegressor, LogisticRegression, Schema
from confide.errors import ParameterError
from confide.guarantee import Guarantee
from confide.planning import simulation
from confide.planning.advice import in_words, verdict_of
from confide.planning.made_up_fits import estimator_with
from confide.privacy.budgets import ZCDP, Neighbours, PureDP, as_budget
from confide.report import page as pages
from confide.report import plan_page
from confide.report.accuracy import guess_probability, percent
from confide.report.accuracy import verdict_of as verdict_of_release
from tests.cli.commands import refused, run

LARGEST_PAGE = 150_000
TRIAL = """
target = { column = "cured", negative = "no", positive = "yes" }
[columns]
treatment = { low = 0, high = 1 }
age = { low = 18, high = 90 }
"</script> <b>" = { low = 0, high = 10 }
"""
COMMAND = ("plan", "--model", "logistic", "--features", 5)


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch):
    """One step to either side or none, and few rows made up for forecasts, so that a page takes a second or two."""
    monkeypatch.setattr(pages, "_DOUBLINGS", (1, 1))
    monkeypatch.setattr(pages, "_FEWER_DOUBLINGS", (1, 0))
    monkeypatch.setattr(simulation, "_N_ROWS", 1000)
    monkeypatch.setattr(simulation, "_N_DESIGNS", 2)
    simulation._made_up_rows.cache_clear()
    yield
    # What was made up of few rows is for no other test.
    simulation._made_up_rows.cache_clear()


def facts_of(page):
    """What the script of a page reads."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def asked_as(page, estimator):
    """Each place of a page: what it says there, and the estimator and the number of rows that it stands for."""
    facts = facts_of(page)
    kinds = {"pure": PureDP, "approximate": ApproxDP, "zero-concentrated": ZCDP}
    for relation, name in zip(facts["relations"], sorted(Neighbours, reverse=True), strict=True):
        for kind, lines in zip(facts["kinds"], relation["points"], strict=True):
            for text, line in zip(relation["rows"], lines, strict=True):
                for (amounts, guess), point in zip(kind["budgets"], line, strict=True):
                    numbers = [int(number.replace(",", "")) for number in re.findall("[0-9,]+", text)]
                    budget = kinds[kind["name"].split()[0]](*map(float, re.findall(r"= ([0-9.e-]+)", amounts)))
                    bounds, n_rows = (None, numbers[0]) if len(numbers) == 1 else (tuple(numbers), None)
                    whom = {"neighbours": name.value, "n_rows_bounds": bounds}
                    said = [facts["said"][place] for place in point["s"]]
                    yield point | {"said": said, "guess": guess}, estimator_with(estimator, budget=budget, **whom), n_rows


def test_every_place_says_what_the_plan_for_it_says():
    """Range, level, sentences and odds, for each of the six promises; and why a plan is refused."""
    model = LogisticRegression(ApproxDP(1.0, 1e-6), inference_share="auto")
    n_refused = n_places = 0
    for point, moved, n_rows in asked_as(plan_page(model, 1500, 4), model):
        n_places += 1
        assert point["guess"] == percent(guess_probability(as_budget(moved.budget)))
        if "l" not in point:
            n_refused += 1
            why = point["said"][0].removeprefix("Refused: ")
            with pytest.raises(ParameterError, match=f"^{re.escape(why)}$"):
                moved.plan(n_rows, 4)
            continue
        plan = moved.plan(n_rows, 4)
        verdict = verdict_of(moved, n_rows, 4, plan=plan)
        assert point["r"] == in_words(verdict.forecast)[1]
        assert point["l"] == verdict.level
        assert verdict.rows.startswith(point["said"][0])
        assert f"Interval: {plan.intervals.lines()['expected interval']}." in point["said"]
        assert point["e"][0] == round(verdict.forecast.error, 4)
    assert n_places == 2 * 3 * 1 * 3
    assert 0 < n_refused < n_places


def test_the_page_begins_where_the_command_does_and_doubles_as_it_says(tmp_path):
    """In the words of `confide plan`, also for twice as many rows; the budget stays private by its own relation."""
    options = ("--epsilon", "0.5", "--error", "0.2", "--positive-rate", "0.4")
    said = " ".join(run(*COMMAND, "--rows", 300, *options, "--page", tmp_path / "plan.html").stdout.split())
    (relation, _), (kind, *_) = (
        facts_of((tmp_path / "plan.html").read_text("utf-8"))[key] for key in ("relations", "kinds")
    )
    middle, right = relation["points"][0][1][1], relation["points"][0][2][1]
    assert (relation["rows"][1], kind["budgets"][1][0]) == ("300 rows", "epsilon = 0.5")
    assert f"Expected error: {middle['r']}, where it would be 20% without privacy." in said
    assert f"With twice as many rows: expected error {right['r']}." in said
    assert f"Wrote {tmp_path / 'plan.html'}." in said
    private = ("--neighbours", "add-or-remove-one", "--n-rows-bounds", 1000, 3000, "--rho", "0.1")
    said = " ".join(run(*COMMAND, *private, "--page", tmp_path / "other.html").stdout.split())
    facts = facts_of((tmp_path / "other.html").read_text("utf-8"))
    assert facts["relations"][0]["rows"] == [f"between {n:,} and {3 * n:,} rows" for n in (500, 1000, 2000)]
    assert [amounts for amounts, _ in facts["kinds"][0]["budgets"]] == ["rho = 0.025", "rho = 0.1", "rho = 0.4"]
    assert f"Expected error: {facts['relations'][0]['points'][0][1][1]['r']}, if" in said


def test_the_command_of_a_page_makes_the_same_page_again(tmp_path, monkeypatch):
    """All that decided it is there: schema, model, switches, guesses and the file; budget and rows are those of the page."""
    monkeypatch.chdir(tmp_path)
    trial(tmp_path)
    options = ("--model", "logistic", "--no-intercept", "--interest", "treatment", "--alpha", "0.01", "--error", "0.2")
    first = ("plan", "--schema", "trial.toml", *options, "--rho", "0.1", "--rows", 20_000, "--page", "a plan.html")
    run(*first)
    text = Path("a plan.html").read_text("utf-8")
    facts = facts_of(text)
    amounts, rows = facts["kinds"][0]["budgets"][1][0], facts["relations"][0]["rows"][0]
    assert (amounts, rows) == ("rho = 0.1", "20,000 rows")
    program, *words = shlex.split(facts["command"])
    assert program == "confide"
    Path("a plan.html").unlink()
    run(*words, "--rho", "0.1", "--rows", "20000")
    assert Path("a plan.html").read_text("utf-8") == text
    assert "[data.command, budget.option, rows.option]" in text


def test_budgets_of_three_kinds_have_the_same_epsilon():
    """In the middle; a rho implies it at a delta of 1e-6, and a delta follows from the number of rows."""
    pure, approximate, zcdp = pages._kinds_beside(PureDP(2.0), 10**6)
    assert (pure, approximate) == (PureDP(2.0), ApproxDP(2.0, 1e-7))
    assert zcdp.to_approx(1e-6).epsilon == pytest.approx(2.0, rel=0.03)
    assert pages._kinds_beside(ApproxDP(1.0, 1e-9), 10**6)[0] == ApproxDP(1.0, 1e-9)
    assert pages._kinds_beside(ZCDP(0.05), 10**6)[1].epsilon == pytest.approx(ZCDP(0.05).to_approx(1e-6).epsilon, rel=0.01)


def test_odds_are_those_of_a_report():
    """The sentence is that of the verdict on a release with this budget."""
    relation = facts_of(plan_page(LogisticRegression(1.0), 2000, 3))["relations"][1]
    guarantee = Guarantee(PureDP(1.0), Neighbours.ADD_OR_REMOVE_ONE, "objective")
    assert relation["meaning"].replace("{odds}", "73.11%") in verdict_of_release(guarantee, None).sentences


def trial(folder):
    """A schema, from a file."""
    (folder / "trial.toml").write_text(TRIAL, encoding="utf-8")
    return Schema.from_toml(folder / "trial.toml")


def test_the_page_is_small_asks_no_network_and_reads_names_as_text(tmp_path):
    """Of the names of columns none ends the script, and the browser itself is told to refuse every request."""
    study = LogisticRegression(ApproxDP(1.0, 1e-6), schema=trial(tmp_path), interest=["treatment"])
    text = plan_page(study, 20_000)
    assert len(text.encode()) < LARGEST_PAGE
    assert "default-src 'none'" in text
    assert not re.search(r"(?:src|href|action)\s*=|@import|url\(|fetch\(|XMLHttp|https?://(?!www\.w3\.org/2000/svg)", text)
    assert text.count("</script>") == 2
    assert any(line.startswith("treatment (per 1): about +- ") for line in facts_of(text)["said"])


def test_tables_need_no_script():
    """Each range, each guess and each refusal stands in a table, which is open until the script closes it."""
    text = plan_page(LogisticRegression(ApproxDP(0.5, 1e-6), mechanism="gradient"), 3000, 4)
    tables = re.search(r'<details class="grid" open>.*?</details>', text, re.DOTALL)[0]
    facts = facts_of(text)
    assert tables.count("<caption>") == 6
    for relation in facts["relations"]:
        for lines in relation["points"]:
            assert all(f"<td>{point['r']}</td>" in tables for line in lines for point in line)
    assert all(f"<td>{guess}</td>" in tables for kind in facts["kinds"] for _, guess in kind["budgets"])
    assert "Refused:" in tables
    assert "<td>refused</td>" in tables
    assert "<noscript>" in text


def test_other_models_have_pages_too(tmp_path, monkeypatch):
    """Numbers are told by R^2, and where nothing is forecast, the page says nothing of an error. One place says as much."""
    monkeypatch.setattr(pages, "_DOUBLINGS", (0, 0))
    monkeypatch.setattr(pages, "_FEWER_DOUBLINGS", (0, 0))
    numbers = facts_of(plan_page(HuberRegressor(1.0, target_bound=1.0), 3000, 4))
    assert numbers["name"] == "Expected R^2"
    assert 0.0 <= numbers["relations"][0]["points"][0][0][0]["e"][2] <= numbers["without"][0] == 0.5
    unknown = facts_of(plan_page(LogisticRegression(1.0, schema=trial(tmp_path), prior={"age": "up"}), 3000))
    assert "name" not in unknown
    assert all(point["r"] == "unknown" for one in unknown["relations"] for line in one["points"][0] for point in line)


def test_what_cannot_be_moved_is_refused(tmp_path):
    """No noise; guesses that contradict each other; a plan that is refused; a file that exists."""
    with pytest.raises(ParameterError, match="finite budget"):
        plan_page(LogisticRegression(float("inf")), 3000, 4)
    with pytest.raises(ParameterError, match="error must lie between"):
        plan_page(LogisticRegression(1.0), 3000, 4, error=0.6)
    with pytest.raises(ParameterError, match="trustworthy"):
        plan_page(LogisticRegression(0.01, inference_share=0.5), 300, 4)
    there = tmp_path / "plan.html"
    there.write_text("mine")
    start = (*COMMAND, "--rows", 900, "--epsilon", 1)
    assert "exists already" in refused(*start, "--page", there)
    assert there.read_text() == "mine"
    assert "must end in" in refused(*start, "--page", tmp_path / "plan.pdf")
    run(*start, "--page", there, "--force")
    assert there.read_text("utf-8").startswith("<!doctype html>")
