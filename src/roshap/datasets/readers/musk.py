"""Musk (version 2): 6598 conformations x 166 shape features, from a MATLAB file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from roshap.datasets.readers.raw import RawTable

LABELS = {1: "non-musk", 2: "musk"}


def read(files: Mapping[str, Path]) -> RawTable:
    """Features ``f001``..``f166`` (the file has no names) and ``class``."""
    from scipy.io import loadmat

    (path,) = files.values()
    # Named variables only: the file also holds cross-validation folds in an object array.
    content = loadmat(path, variable_names=["X", "Y"])
    X = np.asarray(content["X"], dtype=np.float64).T
    names = [f"f{j:03d}" for j in range(1, X.shape[1] + 1)]
    frame = pd.DataFrame(X, columns=names)
    frame["class"] = [LABELS[int(code)] for code in content["Y"].ravel()]
    return RawTable(frame)
