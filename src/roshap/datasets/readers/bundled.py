"""Data sets that ship inside scikit-learn: no download."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pandas as pd

from roshap.datasets.readers.raw import RawTable

BundledName = Literal["breast_cancer", "diabetes", "digits", "iris", "wine"]


def read(files: Mapping[str, Path], *, dataset: BundledName) -> RawTable:
    """Features with scikit-learn's names, and ``target``: class names, or numbers for diabetes.

    Diabetes is read unscaled (years, mm Hg, ...): the scaled form is computed at load, so its last
    bits depend on the machine.
    """
    from sklearn import datasets

    load = getattr(datasets, f"load_{dataset}")
    bunch = load(scaled=False) if dataset == "diabetes" else load()
    frame = pd.DataFrame(bunch.data, columns=[str(name) for name in bunch.feature_names])
    if dataset == "diabetes":
        frame["target"] = bunch.target
    else:
        frame["target"] = [str(bunch.target_names[code]) for code in bunch.target]
    return RawTable(frame)
