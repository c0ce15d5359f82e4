"""`confide verify`."""

from __future__ import annotations

import json
from pathlib import Path

from confide import Ledger
from confide.files import document_text
from tests.cli.commands import SENTINEL, fit, refused, run, spoil


def test_a_fit_is_verified_with_its_ledger_and_its_schema(folder):
    """Exit code 0, and the words say what was and what was not checked."""
    Ledger("study.db", limit=2.0)
    fit("--ledger", "study.db")
    text = " ".join(run("verify", "model.json", "--ledger", "study.db", "--schema", "people.toml").stdout.split())
    assert "The plan was made again" in text
    assert "Charge 1" in text
    assert "has this schema" in text
    assert "Not checked" in text
    assert text.endswith("Verified: what can be checked holds.")
    document = json.loads(run("verify", "model.json", "--format", "json").stdout)
    assert document["verified"] is True
    assert {each["outcome"] for each in document["findings"]} == {"verified", "not checked"}


def test_a_changed_file_another_ledger_and_a_void_guarantee_give_3(folder):
    fit()
    Ledger("other.db", limit=2.0)
    assert "NOT VERIFIED" in run("verify", "model.json", "--ledger", "other.db", code=3).stdout
    content = json.loads(Path("model.json").read_text(encoding="utf-8"))["content"]
    content["guarantee"]["budget"]["epsilon"] = content["parameters"]["budget"]["epsilon"] = 0.01
    Path("changed.json").write_text(document_text(content), encoding="utf-8")
    assert "Failed" in run("verify", "changed.json", code=3).stdout
    assert json.loads(run("verify", "changed.json", "--format", "json", code=3).stdout)["verified"] is False
    fit("--epsilon", "inf", "--out", "void.json", code=3)
    assert "no guarantee" in run("verify", "void.json", code=3).stdout


def test_damage_and_what_is_no_model_give_2(folder):
    """And say nothing of what the file holds."""
    fit()
    text = Path("model.json").read_text(encoding="utf-8")
    Path("model.json").write_text(text.replace('"alpha"', '"alfa"'), encoding="utf-8")
    assert "damaged" in refused("verify", "model.json")
    spoil(work=SENTINEL)
    assert SENTINEL not in refused("verify", "people.csv")
    assert "nowhere.json" in refused("verify", "nowhere.json")


def test_a_model_that_an_editor_gave_a_mark_of_its_encoding_is_verified_and_reported(folder):
    """Such a mark is no part of what the file says."""
    Ledger("study.db", limit=2.0)
    fit("--ledger", "study.db")
    path = Path("model.json")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert "Verified" in run("verify", "model.json").stdout
    run("report", "model.json", "--out", "page.html")
    run("report", "model.json", "--zip", "--out", "release.zip")
    run("inspect", "model.json")


def test_an_evaluation_is_told_from_a_model(folder):
    """The refusal says what to give, and which command checks rates."""
    fit()
    said = run("evaluate", "model.json", "people.csv", "--epsilon", "5", "--no-ledger", "--out", "ev.json").stdout
    assert said.endswith("\nWrote ev.json\n")
    for command in ("verify", "inspect"):
        said = refused(command, "ev.json")
        assert "ev.json is an evaluation, not a model. Give the file of the model that was evaluated" in said
        assert "confide report MODEL.json --evaluation ev.json" in said
