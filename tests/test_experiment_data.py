"""Data sets of the experiments: what is downloaded is checked, what is missing is said, and nothing is replaced."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from confide import datasets

FOLDER = Path(__file__).resolve().parents[1] / "experiments"
BANK = b'"age";"job";"balance";"y"\n58;"management";2143;"no"\n44;"unknown";-29;"yes"\n'


@pytest.fixture(scope="module")
def modules():
    """The modules of the experiments, found as when they are run."""
    before, known = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    try:
        import data_sources
        import obtain_data
        import prepared_data

        yield {"sources": data_sources, "obtain": obtain_data, "prepared": prepared_data}
    finally:
        sys.path[:] = before
        for name in set(sys.modules) - known:
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(FOLDER)):
                del sys.modules[name]


def bank_source(modules, folder, content=BANK, **changes):
    """A bank of two rows, in an archive in an archive at an address of this machine."""
    inner, path = io.BytesIO(), folder / "bank_marketing.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("bank-full.csv", content)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bank.zip", inner.getvalue())
    [source] = [source for source in modules["sources"].SOURCES if source.name == "bank"]
    digest = hashlib.sha256(BANK).hexdigest()
    download = replace(source.downloads[0], **({"url": path.as_uri(), "sha256": digest} | changes))
    return replace(source, rows=2, downloads=(download,))


def test_a_data_set_is_downloaded_checked_and_prepared_once(modules, tmp_path):
    """The table has the rows of the file in the archive; a second run leaves it as it is, and needs no source."""
    folder = tmp_path / "data"
    source = bank_source(modules, tmp_path)
    assert modules["obtain"].obtain_all([source], folder) == 0
    table = folder / "bank_full.parquet"
    frame = pd.read_parquet(table)
    assert frame["balance"].tolist() == [2143, -29]
    assert frame["job"].tolist() == ["management", "unknown"]
    assert sorted(path.name for path in folder.rglob("*")) == ["bank_full.parquet", "bank_marketing.zip", "downloads"]
    before = table.stat().st_mtime_ns
    gone = replace(source, downloads=(replace(source.downloads[0], url="http://127.0.0.1:9/none"),))
    assert modules["obtain"].obtain_all([gone], folder) == 0
    assert table.stat().st_mtime_ns == before


def test_without_a_connection_the_error_says_where_a_file_may_be_put(modules, tmp_path, capsys):
    """No half file is left; a file put there by hand is used, if it is the expected one."""
    folder = tmp_path / "data"
    source = bank_source(modules, tmp_path, url="http://127.0.0.1:9/bank.zip")
    assert modules["obtain"].obtain_all([source], folder) == 1
    error = capsys.readouterr().err
    place = folder / "downloads" / "bank_marketing.zip"
    assert "http://127.0.0.1:9/bank.zip could not be downloaded" in error
    assert f"put it here as {place}" in error
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    place.write_bytes((tmp_path / "bank_marketing.zip").read_bytes())
    assert modules["obtain"].obtain_all([source], folder) == 0
    assert (folder / "bank_full.parquet").is_file()


def test_other_content_makes_no_table(modules, tmp_path, capsys):
    """One changed byte, a file that is no archive, and a wrong number of rows are refused; the file is kept."""
    changed = bank_source(modules, tmp_path, content=BANK.replace(b"44", b"45"))
    assert modules["obtain"].obtain_all([changed], tmp_path / "a") == 1
    assert "has other content than expected: its SHA-256 is" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "a").rglob("*") if path.is_file()] == ["bank_marketing.zip"]
    whole = bank_source(modules, tmp_path)
    (tmp_path / "bank_marketing.zip").write_bytes(b"<html>not found</html>")
    assert modules["obtain"].obtain_all([whole], tmp_path / "b") == 1
    assert "is not the expected archive with bank.zip / bank-full.csv" in capsys.readouterr().err
    short = replace(bank_source(modules, tmp_path), rows=3)
    assert modules["obtain"].obtain_all([short], tmp_path / "c") == 1
    assert "bank has 2 rows, expected were 3" in capsys.readouterr().err


def test_tables_have_the_columns_that_the_experiments_read(modules):
    """Connections keep the dot of their label, the outcome of NLTCS is its fifth item, the label of a census comes last."""
    sources = modules["sources"]
    assert len(sources.KDD_COLUMNS) == 42
    line = b",".join([b"0", b"tcp", b"http", b"SF", *[b"1"] * 37, b"normal."]) + b"\n"
    frame = sources.connections([gzip.compress(line)])
    assert frame["label"].tolist() == ["normal."]
    assert frame["service"].tolist() == ["http"]
    items = np.arange(16) % 2
    text = ",".join(map(str, items)).encode() + b"\n"
    table = sources.disabilities([text, text])
    assert table.shape == (2, 16)
    assert table.columns[-1] == "outcome"
    assert table["outcome"].tolist() == [items[4]] * 2
    assert table["item5"].tolist() == [items[15]] * 2
    census = sources.census([b"3 4 1\n5 6 0\n"])
    assert census.columns.tolist() == ["column1", "column2", "label"]
    assert census["label"].tolist() == [1, 0]


def test_each_source_names_its_licence_and_an_address_that_pins_a_version(modules):
    """Every file that the experiments read has a source, but for Adult, which comes with the library."""
    sources = modules["sources"].SOURCES
    assert {source.name: source.file for source in sources} == modules["prepared"].FILES
    for source in sources:
        assert source.licence
        assert source.citation
        for download in source.downloads:
            assert download.url.startswith("https://")
            assert len(bytes.fromhex(download.sha256)) == 32
    assert len(datasets.load_adult().X_train) == 32_561


def test_the_command_names_what_is_wrong(tmp_path):
    """An unknown data set, and a folder that is a file, are told before anything is downloaded."""

    def run(*arguments):
        return subprocess.run(
            [sys.executable, FOLDER / "obtain_data.py", *arguments],
            capture_output=True,
            text=True,
            env=os.environ,
            timeout=60,
        )

    done = run(tmp_path, "banks")
    assert done.returncode == 2
    assert "no data set is named 'banks'; expected one of kddcup99, bank, nltcs, ipums_br" in done.stderr
    (tmp_path / "file").write_text("kept")
    done = run(tmp_path / "file")
    assert done.returncode == 2
    assert "name another one" in done.stderr
    assert (tmp_path / "file").read_text() == "kept"


def test_the_sample_of_connections_has_the_frequencies_of_the_whole_set(modules, tmp_path):
    """Types of which the 10 percent keep every row are thinned to a tenth; the others are kept."""
    prepared = modules["prepared"]
    columns = modules["sources"].KDD_COLUMNS
    labels = ["smurf."] * 3_000 + ["normal."] * 1_000 + ["back."] * 2_000 + ["pod."] * 1_000
    frame = pd.DataFrame(dict.fromkeys(columns, 0), index=range(len(labels)))
    frame["label"] = labels
    frame.to_parquet(tmp_path / prepared.FILES["kddcup99"])
    connections = prepared._connections
    thin, normal = connections(tmp_path, True, "normal")
    assert normal.sum() == 1_000
    assert "label" not in thin.columns
    assert abs(len(thin) - 4_000 - 300) < 5 * (3_000 * 0.09) ** 0.5
    _, denial = connections(tmp_path, True, "denial")
    assert denial.sum() == len(thin) - 1_000
    assert len(connections(tmp_path, False, "normal")[0]) == len(labels)
