"""Where the data sets of the experiments come from: address, checksum, licence, and how a table is made of each.

The checksum is that of the file that holds the rows, after it was taken out of an archive. Addresses name one version.
"""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

_KDD_NAMES = (
    "duration protocol_type service flag src_bytes dst_bytes land wrong_fragment urgent hot num_failed_logins logged_in "
    "num_compromised root_shell su_attempted num_root num_file_creations num_shells num_access_files num_outbound_cmds "
    "is_host_login is_guest_login count srv_count serror_rate srv_serror_rate rerror_rate srv_rerror_rate same_srv_rate "
    "diff_srv_rate srv_diff_host_rate dst_host_count dst_host_srv_count dst_host_same_srv_rate dst_host_diff_srv_rate "
    "dst_host_same_src_port_rate dst_host_srv_diff_host_rate dst_host_serror_rate dst_host_srv_serror_rate "
    "dst_host_rerror_rate dst_host_srv_rerror_rate label"
)
KDD_COLUMNS = _KDD_NAMES.split()


@dataclass(frozen=True)
class Download:
    """One file at a public address.

    Attributes
    ----------
    url : str
    name : name of the file that is kept
    sha256 : checksum of the file with the rows
    inside : names of archives and of the file in them, from the outside to the inside; empty if the download is that file
    """

    url: str
    name: str
    sha256: str
    inside: tuple[str, ...] = ()

    def content(self, data: bytes) -> bytes:
        """The file with the rows."""
        for name in self.inside:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                data = archive.read(name)
        return data


@dataclass(frozen=True)
class Source:
    """A data set.

    Attributes
    ----------
    name : as in the experiments
    file : the table that is made
    rows : its number of rows
    licence : what the source says of the use of the data
    citation : whom to cite
    downloads : what is downloaded
    table : makes the table of the files with the rows
    """

    name: str
    file: str
    rows: int
    licence: str
    citation: str
    downloads: tuple[Download, ...]
    table: Callable[[list[bytes]], pd.DataFrame]


def bank(contents: list[bytes]) -> pd.DataFrame:
    """The table of bank-full.csv."""
    return pd.read_csv(io.BytesIO(contents[0]), sep=";", keep_default_na=False)


def connections(contents: list[bytes]) -> pd.DataFrame:
    """The table of the 10 percent of KDD Cup 99. Labels keep their dot."""
    return pd.read_csv(io.BytesIO(gzip.decompress(contents[0])), header=None, names=KDD_COLUMNS, keep_default_na=False)


def disabilities(contents: list[bytes]) -> pd.DataFrame:
    """The table of NLTCS: three parts one after the other; the item "getting about outside" (the fifth) is the outcome."""
    items = np.vstack([np.loadtxt(io.BytesIO(part), delimiter=",", dtype=np.uint8, ndmin=2) for part in contents])
    last = items.shape[1] - 1
    order = [*range(4), last, *range(5, last), 4]
    return pd.DataFrame(items[:, order], columns=[f"item{place}" for place in range(1, last + 1)] + ["outcome"])


def census(contents: list[bytes]) -> pd.DataFrame:
    """The table of a census sample as Lee and Kifer encoded it: columns without names, the label last."""
    numbers = np.loadtxt(io.BytesIO(contents[0]), dtype=np.int64, ndmin=2)
    return pd.DataFrame(numbers, columns=[f"column{place}" for place in range(1, numbers.shape[1])] + ["label"])


_NLTCS = (
    "https://raw.githubusercontent.com/UCLA-StarAI/Density-Estimation-Datasets/37d53c1a8ba488d0a39e8c64bd3387577080b143/"
    "datasets/nltcs/"
)
SOURCES = (
    Source(
        "kddcup99", "kddcup99_10percent.parquet", 494_021,
        "CC BY 4.0 (UCI Machine Learning Repository)",
        "S. Stolfo, W. Fan, W. Lee, A. Prodromidis, P. Chan, KDD Cup 1999 Data, 1999, doi:10.24432/C51C7N",
        (Download(
            "https://ndownloader.figshare.com/files/5976042", "kddcup99_10percent.gz",
            "8045aca0d84e70e622d1148d7df782496f6333bf6eb979a1b0837c42a9fd9561",
        ),),
        connections,
    ),
    Source(
        "bank", "bank_full.parquet", 45_211,
        "CC BY 4.0 (UCI Machine Learning Repository)",
        "S. Moro, P. Rita, P. Cortez, Bank Marketing, 2014, doi:10.24432/C5K306",
        (Download(
            "https://archive.ics.uci.edu/static/public/222/bank+marketing.zip", "bank_marketing.zip",
            "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d", ("bank.zip", "bank-full.csv"),
        ),),
        bank,
    ),
    Source(
        "nltcs", "nltcs.parquet", 21_574,
        "not stated; an extract of a public survey that is often used to compare models",
        "K. Manton, L. Corder, E. Stallard, Journal of Gerontology 48, 1993; E. Erosheva, S. Fienberg, C. Joutard, Annals "
        "of Applied Statistics 1, 2007",
        (
            Download(_NLTCS + "nltcs.train.data", "nltcs.train.data",
                     "e547a7aedad1dd2f7177030881ab1b92c7e24ae5464c71a0f1f89daecaf52b30"),
            Download(_NLTCS + "nltcs.valid.data", "nltcs.valid.data",
                     "93bbbf5c6febdc9bc6e5b5bfab636f4dc0685ab2896d24b23dd267794c3bfcf6"),
            Download(_NLTCS + "nltcs.test.data", "nltcs.test.data",
                     "f9ffa6b74b27dc03bee3203d157ee31079e80b13be40d0c0093d635c25aed523"),
        ),
        disabilities,
    ),
    Source(
        "ipums_br", "ipums_br.parquet", 38_000,
        "the terms of IPUMS International: for research and teaching, not to be passed on",
        "Minnesota Population Center, IPUMS International (Brazil); encoded by J. Lee and D. Kifer, Concentrated "
        "differentially private gradient descent with adaptive per-iteration privacy budget, KDD 2018",
        (Download(
            "https://raw.githubusercontent.com/ppmlguy/DP-AGD/f3309463051a7f2af70e743aa8e1e062ce0b080d/dataset/IPUMS-BR.dat",
            "IPUMS-BR.dat", "9bcc80cf279457d62e9025d31a05c3e494e9d6edbb2097ba935eb4926a39884a",
        ),),
        census,
    ),
)  # fmt: skip
