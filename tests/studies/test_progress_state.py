"""The file of what a study has done."""

from __future__ import annotations

import hashlib
import json

import pytest

from confide.errors import FileError, StudyError
from confide.studies.progress import Begun, State, checksum_of

BEGUN = Begun({"budget": {"epsilon": 0.5}}, "abc", "ledger", 1)


def test_a_state_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "study.state.json"
    assert State.of(path) == State()
    state = State(fit=BEGUN, checksums={"study": "1", "schema": "2"}).with_result("fit", sha256="f")
    state.write(path)
    assert State.of(path) == state
    assert state.fit.sha256 == "f"
    more = State(state.fit, BEGUN).with_result("evaluation", result={"accuracy": 0.5})
    more.write(path)
    assert State.of(path).evaluation.result == {"accuracy": 0.5}
    assert State.of(path).fit.sha256 == "f"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"kind": "confide-study-state", "format_version": 2}',
        '{"kind": "x", "format_version": 1}',
        "[" * 9999,
    ],
)
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "study.state.json"
    path.write_text(text)
    with pytest.raises(StudyError, match="not a state that this version of confide understands"):
        State.of(path)


def test_a_state_with_other_parts_is_refused(tmp_path):
    path = tmp_path / "study.state.json"
    State(fit=BEGUN).write(path)
    path.write_text(path.read_text().replace('"earlier"', '"before"'))
    with pytest.raises(StudyError, match="changed by hand"):
        State.of(path)


@pytest.mark.parametrize("part", ["facts", "fingerprint", "ledger", "earlier", "result", "sha256"])
@pytest.mark.parametrize("value", [[1], {"a": 1}, True, -1.5, float("nan"), 7, "text"])
def test_a_state_holds_values_of_the_right_types_or_is_refused(tmp_path, part, value):
    """Whatever replaces a value: nothing that reads a state has to expect another type."""
    takes = {"facts": dict, "fingerprint": str, "ledger": str, "earlier": int, "result": dict, "sha256": str}
    path = tmp_path / "study.state.json"
    State(fit=BEGUN, evaluation=BEGUN, report={"sha256": "1"}).write(path)
    document = json.loads(path.read_text())
    document["evaluation"][part] = value
    path.write_text(json.dumps(document))
    if type(value) is takes[part]:
        assert getattr(State.of(path).evaluation, part) == value
    else:
        with pytest.raises(StudyError, match="changed by hand"):
            State.of(path)
    for name in ("report", "checksums"):
        path.write_text(json.dumps(document | {"evaluation": None, name: {"sha256": value}}))
        if isinstance(value, str):
            assert getattr(State.of(path), name) == {"sha256": value}
        else:
            with pytest.raises(StudyError, match="changed by hand"):
                State.of(path)


def test_checksums_are_those_of_files(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert checksum_of(tmp_path / "a") == hashlib.sha256(b"abc").hexdigest()
    assert checksum_of(tmp_path / "b") is None
    with pytest.raises(FileError, match="cannot read"):
        checksum_of(tmp_path)
