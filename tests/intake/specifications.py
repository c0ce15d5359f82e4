"""What a fit demands of rows, as small as it can be, for tests of what meets the demand."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from confide.erm.row_bounds import BallBound
from confide.features.table import RowsPerPerson
from confide.intake.specification import RowSpecification
from confide.intake.targets import Classes


def specification(**changed):
    """Rows of numbers with labels 0 and 1, of norm at most 1; each fact may be another."""
    facts = {
        "columns_of": BaseEstimator(),
        "is_fit": True,
        "encoder": None,
        "target": Classes((0, 1)),
        "row_bound": BallBound(1.0),
        "rows_per_person": RowsPerPerson(1, np.arange),
        "fourier_map": lambda n_inputs: None,
        "accepts_sparse": True,
    }
    return RowSpecification(**(facts | changed))
