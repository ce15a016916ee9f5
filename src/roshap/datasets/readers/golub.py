"""Golub leukaemia: 72 patients x 7129 probes, from two probe-by-patient CSVs and the classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from roshap.datasets.readers.raw import RawTable
from roshap.errors import DataError

EXPRESSION = ("data_set_ALL_AML_train.csv", "data_set_ALL_AML_independent.csv")
CLASSES = "actual.csv"
PROBE = "Gene Accession Number"


def read(files: Mapping[str, Path]) -> RawTable:
    """Patients in rows, ordered by number; one column per probe, plus ``class`` (ALL or AML)."""
    values = pd.concat([_patients(files[name]) for name in EXPRESSION]).sort_index()
    cancer = pd.read_csv(files[CLASSES]).set_index("patient")["cancer"]
    if not values.index.equals(cancer.sort_index().index):
        raise DataError("golub: the patients of the expression files and of actual.csv differ")
    return RawTable(pd.concat([values, cancer.sort_index().rename("class")], axis=1))


def _patients(path: Path) -> pd.DataFrame:
    """(patients x probes) of one file; the ``call`` column after each patient is left out."""
    header = pd.read_csv(path, header=None, nrows=1, dtype=str).iloc[0]
    numbered = [i for i, name in enumerate(header) if name.isdigit()]
    probe = list(header).index(PROBE)
    table = pd.read_csv(path, header=None, skiprows=1, usecols=[probe, *numbered])
    table = table.set_index(probe).rename_axis(index=None)
    return table.set_axis([int(header[i]) for i in table.columns], axis=1).T
