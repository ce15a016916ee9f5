"""Auto MPG: blank-separated columns, a tab before the quoted car name, ``?`` for missing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from roshap.datasets.readers.numbers import EXACT
from roshap.datasets.readers.raw import RawTable

COLUMNS = (
    "mpg",
    "cylinders",
    "displacement",
    "horsepower",
    "weight",
    "acceleration",
    "model_year",
    "origin",
    "car_name",
)


def read(files: Mapping[str, Path], *, complete_rows: bool = True) -> RawTable:
    """Read 398 cars; 392 with ``complete_rows``, which leaves out six unknown horsepowers."""
    (path,) = files.values()
    frame = pd.read_csv(
        path, sep=r"\s+", header=None, names=list(COLUMNS), na_values=["?"], quotechar='"', **EXACT
    )
    return RawTable(frame.dropna(ignore_index=True) if complete_rows else frame)
