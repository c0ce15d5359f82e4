"""Study files for tests."""

from __future__ import annotations

from confide.studies.study import Study

TEXT = """
[study]
name = "Income of adults"
analyst = "A. Name"

[data]
file = "people.csv"
schema = "people.toml"

[budget]
epsilon = 0.5

[ledger]
file = "study.db"

[model]
kind = "logistic"

[outputs]
model = "model.json"
report = "report.html"
"""
EVALUATION = '\n[evaluation]\nfile = "held_out.csv"\nepsilon = 0.25\nallow_hidden = true\n'


def study_of(folder, text=TEXT, **changes):
    """The study of a text in which the keys of `changes` have other lines, None for none."""
    lines = []
    for line in text.splitlines():
        key = line.partition(" =")[0]
        if key in changes:
            lines += [] if changes[key] is None else [f"{key} = {changes[key]}"]
        else:
            lines.append(line)
    path = folder / "study.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return Study.from_toml(path)
