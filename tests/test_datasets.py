import subprocess
import sys
import warnings
from dataclasses import FrozenInstanceError
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from confide.datasets import load_adult
from confide.errors import SchemaWarning
from confide.estimators.logistic import LogisticRegression
from confide.features.cells import read_labels
from confide.features.columns import CategoryColumn
from confide.features.encoder import Encoder


@pytest.fixture(scope="module")
def adult():
    return load_adult()


def test_adult_has_the_published_split(adult):
    """The sizes and label counts are those of the original files."""
    assert adult.X_train.shape == (32561, 14)
    assert adult.X_test.shape == (16281, 14)
    assert adult.y_train.value_counts().to_dict() == {"<=50K": 24720, ">50K": 7841}
    assert adult.y_test.value_counts().to_dict() == {"<=50K": 12435, ">50K": 3846}
    assert adult.y_train.name == adult.y_test.name == "income"


def test_adult_has_gaps_where_the_original_has_question_marks(adult):
    """Three columns have missing values; 30162 and 15060 rows are complete."""
    for rows, complete in ((adult.X_train, 30162), (adult.X_test, 15060)):
        gaps = rows.isna().any()
        assert set(gaps[gaps].index) == {"workclass", "occupation", "native-country"}
        assert len(rows.dropna()) == complete
        assert not (rows == "?").to_numpy().any()


def test_adult_frames_are_fresh(adult):
    """Changing a frame does not change what the next call gives."""
    other = load_adult()
    other.X_train.loc[0, "age"] = -1
    assert adult.X_train.loc[0, "age"] == load_adult().X_train.loc[0, "age"] != -1


def test_the_data_set_is_frozen_and_prints_no_rows(adult):
    """It cannot be changed, and repr shows only the schema."""
    with pytest.raises(FrozenInstanceError):
        adult.schema = None
    assert repr(adult) == "SplitData(Schema(14 columns, target='income'))"


def test_the_schema_fits_the_rows(adult):
    """Columns have the same order, every category is declared, and the encoder accepts all rows."""
    assert adult.schema.column_names == tuple(adult.X_train.columns)
    encoder = Encoder(adult.schema)
    assert encoder.n_features == 107
    for rows in (adult.X_train, adult.X_test):
        codes = encoder.read(rows)
        levels = [code for code in codes.columns if code.dtype.kind == "i"]
        assert len(levels) == sum(isinstance(column, CategoryColumn) for column in adult.schema.columns)
        assert min(code.min() for code in levels) >= 0
        encoded = encoder.expand(codes, 0, codes.n_rows)
        assert np.linalg.norm(encoded, axis=1).max() <= encoder.row_bound.l2_norm
        assert encoder.row_bound.clip(encoded) is encoded
        # Every category of more than two levels has exactly one active column in every row.
        for group, linked in zip(encoder.groups, encoder.row_bound.linked, strict=True):
            if linked:
                part = encoded[:, group.start : group.start + group.size]
                assert set(np.unique(part)) == {0.0, 1.0}
                assert (part.sum(axis=1) == 1.0).all()
    target = adult.schema.target
    assert int((read_labels(adult.y_train, target.negative, target.positive) == 1).sum()) == 7841


def test_cells_that_the_code_book_does_not_list_have_a_level_too(adult):
    """So the groups of all categories with more than two levels are linked, whatever a row holds."""
    encoder = Encoder(adult.schema)
    linked = [group.column for group, is_linked in zip(encoder.groups, encoder.row_bound.linked, strict=True) if is_linked]
    assert linked == [
        column.name for column in adult.schema.columns if isinstance(column, CategoryColumn) and column.name != "sex"
    ]
    rows = adult.X_test.iloc[:1].astype(object)
    rows[linked] = "unheard of"
    active = {name for name, entry in zip(encoder.feature_names, encoder.transform(rows)[0], strict=True) if entry == 1.0}
    assert {f"{column.name}={column.other}" for column in adult.schema.columns if column.name in linked} <= active


def test_bounds_of_the_schema_are_round_and_not_those_of_the_rows(adult):
    """Two bounds that no rule of the survey gives are round numbers, and not the largest values of the rows."""
    columns = {column.name: column for column in adult.schema.columns}
    for name in ("fnlwgt", "capital-loss"):
        assert columns[name].high % 1000 == 0
        assert columns[name].high != adult.X_train[name].max()


def test_the_schema_describes_every_cell_of_the_test_part(adult):
    """So the first example of the README warns of nothing."""
    model = LogisticRegression(float("inf"), schema=adult.schema, alpha=1.0).fit(adult.X_train[:500], adult.y_train[:500])
    with warnings.catch_warnings():
        warnings.simplefilter("error", SchemaWarning)
        model.predict(adult.X_test)


def test_adult_equals_the_reference_copy_cell_by_cell(adult, data_dir):
    """It equals an independent copy of both files, if there is one."""
    for name, X, y in (("train", adult.X_train, adult.y_train), ("test", adult.X_test, adult.y_test)):
        reference = pd.read_parquet(data_dir / f"adult_{name}.parquet")
        pd.testing.assert_frame_equal(X.assign(income=y), reference, check_dtype=False)


def test_the_shipped_files_are_small_and_attributed():
    """The wheel stays small, and the licence is part of it."""
    folder = files("confide") / "datasets_data"
    sizes = {entry.name: len(entry.read_bytes()) for entry in folder.iterdir() if entry.is_file()}
    assert set(sizes) == {"adult.toml", "adult_train.parquet", "adult_test.parquet", "ATTRIBUTION.md"}
    assert sum(sizes.values()) < 600_000
    text = (folder / "ATTRIBUTION.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in text
    assert "doi:10.24432/C5XW20" in text


def test_importing_the_rooms_for_columns_and_data_sets_is_light():
    """Libraries for frames are imported when they are used, so that a plan or a help text does not wait for them."""
    code = (
        "import sys, confide.datasets, confide.features.encoder\n"
        "print([name for name in ('pandas', 'polars', 'pyarrow', 'narwhals', 'sklearn') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"
