"""A quadratic form in place of |w|^2, and the rows in its norm.

A fit with the ridge w' P w over rows x is a fit with the ridge |v|^2 over rows z = L^-1 x, where P = L L' and v = L' w. The
map from x to z is linear and known to everybody, so nothing else changes: noise, certificate and statement are those of an
ordinary fit to the rows z, whose norm is that of P^-1. Proof: privacy/proofs/penalty.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from scipy.linalg import block_diag, solve_triangular

from confide.errors import ParameterError
from confide.features.column_encodings import CategoryEncoding, ColumnEncoding, NumberEncoding
from confide.features.encoder import Encoder
from confide.features.smoothing import Smooth, checked_strength, smoothing_form
from confide.types import Array

LARGEST_CONDITION = 1e8
"""The largest eigenvalue of a form may be this many times its smallest. Beyond, rounding of the map would change the form."""
MAP_BITS = 24
"""Entries of the map are rounded to this many bits of the largest in their row, see `PenalisedRows`."""
