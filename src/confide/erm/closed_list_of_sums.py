"""The closed list of sums over rows: trusted code asks a source of rows for no other."""

from __future__ import annotations

from typing import TypeAlias

from confide.erm.direction_sums import DirectionSum
from confide.erm.frames import FrameSum, SpreadSum
from confide.erm.least_squares_sums import LeastSquaresSum
from confide.erm.moment_sums import MomentSum
from confide.erm.row_sums import RowSum

SumOverRows: TypeAlias = RowSum | LeastSquaresSum | MomentSum | DirectionSum | FrameSum | SpreadSum
"""A sum that a source of rows makes. Solvers are lent rows over which they may sum what they like."""
