"""Which text of a CSV file a fit reads as a number, as a missing cell, or not at all.

A fit lets pyarrow convert a column of numbers, and one cell that is no number ends the conversion. Here the same grammar is
written down, so that such cells can be counted. The tests compare it with pyarrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from confide.data.on_disk import CSV_MISSING

_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_NOT_FINITE = r"[+-]?(?i:inf|infinity|nan(\([0-9A-Za-z_]*\))?)"
_READABLE = f"^({_NUMBER}|{_NOT_FINITE})$"
_DECIMAL_COMMA = r"^\s*[+-]?([0-9]+|[0-9]{1,3}([. ][0-9]{3})+),[0-9]+\s*$"


@dataclass(frozen=True, slots=True, eq=False)
class ReadTexts:
    """What a fit makes of some texts. Each array has one entry for each text.

    Parameters
    ----------
    numbers : float64; NaN for a missing cell, and for one that cannot be read
    unreadable : whether the text is neither a number nor a missing cell
    decimal_comma : whether an unreadable text is a number with a decimal comma
    """

    numbers: Any
    unreadable: Any
    decimal_comma: Any


def read_texts(texts: Any) -> ReadTexts:
    """What a fit makes of the cells of a column of numbers in a CSV file.

    Parameters
    ----------
    texts : Arrow array of text; a null is a missing cell
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = pc.or_kleene(pc.is_null(texts), pc.is_in(texts, pa.array(CSV_MISSING, texts.type)))
    trimmed = pc.utf8_trim(texts, " \t")
    readable = pc.fill_null(pc.match_substring_regex(trimmed, _READABLE), False)
    numbers = pc.if_else(pc.and_(readable, pc.invert(missing)), trimmed, pa.scalar(None, texts.type)).cast(pa.float64())
    unreadable = pc.and_(pc.invert(readable), pc.invert(missing)).to_numpy(zero_copy_only=False)
    commas = pc.fill_null(pc.match_substring_regex(texts, _DECIMAL_COMMA), False).to_numpy(zero_copy_only=False)
    return ReadTexts(
        np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64), unreadable, np.logical_and(unreadable, commas)
    )
