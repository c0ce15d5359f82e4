"""Drafts that tests of the start share."""

from __future__ import annotations

from confide.studies.drafts import ColumnDraft, SchemaDraft, StudyDraft
from confide.studies.text_tables import TableNames

ODD = 'Größe "x", [cm]\n= 1'
SCHEMA = SchemaDraft(
    (
        ColumnDraft("age", {"low": 18, "high": 90}, "a note"),
        ColumnDraft(ODD, {"categories": ["a", 'b"\\'], "other": True}),
        ColumnDraft("name\nx = 1", None),
    ),
    {"column": "ill", "negative": "no", "positive": "yes"},
    person="who",
)
STUDY = StudyDraft(
    'A "study"\n[x]', "people, 1.csv", "people.toml", epsilon=0.5, delta=1e-6, limit=2.0, max_rows_per_person=3
)
TABLE = TableNames(("age", "sex", "PAY_1", "PAY_2", "id", "ill"), {})
