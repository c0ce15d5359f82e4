"""A study as a Python script: it plans, and fits only if it is asked to."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from confide.starting.drafts import StudyDraft
from confide.starting.steps import Step

_BEGIN = """\
# {name}
#
#   python study.py          shows the plan; reads no row and spends nothing
#   python study.py --fit    fits the model, charges the ledger, and writes model.json and report.html

import sys
from pathlib import Path

import confide
import confide.planning
import confide.report

folder = Path(__file__).resolve().parent
"""


def script_text(study: StudyDraft, steps: Sequence[Step]) -> str:
    """The text of `study.py`."""
    name = "".join(letter if letter.isprintable() else "?" for letter in study.name)
    free = [f"# {step.title}.\n{step.code}\n" for step in steps if not step.spends]
    spending = [f"    # {step.title}.\n{textwrap.indent(step.code, '    ')}\n" for step in steps if step.spends]
    return "\n".join([_BEGIN.format(name=name), *free, 'if "--fit" in sys.argv[1:]:', "\n".join(spending)])
