"""The files of a study that begins."""

from __future__ import annotations

import pytest

from confide.errors import FileError
from confide.studies.templates import check_files, write_files
from tests.starting.studies import SCHEMA, STUDY


def in_folder(folder):
    """Where the files are to be written."""
    names = {"schema": "people.toml", "study": "study.toml", "notebook": "study.ipynb", "script": "study.py"}
    return {what: folder / name for what, name in names.items()}


def test_all_files_are_written(tmp_path) -> None:
    """Into a folder that is made."""
    files = in_folder(tmp_path / "new" / "study")
    check_files(files, [], overwrite=False)
    write_files(files, SCHEMA, STUDY, overwrite=False)
    assert all(path.stat().st_size > 100 for path in files.values())


@pytest.mark.parametrize("name", ["people.toml", "study.toml", "study.ipynb", "study.py"])
def test_no_file_is_replaced_unasked(tmp_path, name) -> None:
    """One that exists stops all; with force it is replaced."""
    files = in_folder(tmp_path)
    (tmp_path / name).write_text("mine")
    with pytest.raises(FileError, match="exists already"):
        check_files(files, [], overwrite=False)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    check_files(files, [], overwrite=True)
    write_files(files, SCHEMA, STUDY, overwrite=True)
    assert (tmp_path / name).read_text() != "mine"


def test_the_table_is_never_replaced(tmp_path) -> None:
    """Not even with force."""
    with pytest.raises(FileError, match="is the table itself"):
        check_files(in_folder(tmp_path), [tmp_path / "study.py"], overwrite=True)


def test_a_file_is_no_folder(tmp_path) -> None:
    """It is refused."""
    (tmp_path / "x").write_text("")
    with pytest.raises(FileError, match="is no folder"):
        check_files(in_folder(tmp_path / "x"), [], overwrite=False)
