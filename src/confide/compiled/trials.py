"""The kernel is tried on made-up rows before its sums are trusted. A trial looks at nobody's rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from confide.compiled.loading import Kernel, kernel
from confide.erm.hinges import HuberHinge, LogisticHinge, SmoothHinge
from confide.erm.losses import LogisticLoss

CERTIFIED_LOSSES = (LogisticLoss, LogisticHinge, HuberHinge, SmoothHinge)
"""Losses with whose gradients the kernel is trusted where certificates rest on them."""


def kernel_if(is_right: Callable[[Kernel], bool], what: str) -> Kernel | None:
    """The compiled module if it passes a trial; otherwise None, with a warning that NumPy makes these sums (`what`)."""
    module = kernel()
    # Whoever calls may have made warnings of NumPy errors.
    with np.errstate(all="ignore"):
        if module is None or is_right(module):
            return module
    # The budget may be charged already, so nothing may fail here, not even where warnings are errors.
    with suppress(RuntimeWarning):
        warnings.warn(
            f"The compiled kernel adds up wrongly on this machine, or was built from another version of its source, so "
            f"{what} are summed by NumPy. Build it again, perhaps with another compiler, or switch it off with "
            f"CONFIDE_COMPILED=0.",
            RuntimeWarning,
            stacklevel=2,
        )
    return None
