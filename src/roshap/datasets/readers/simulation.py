"""The zero-inflated simulation of arXiv 2605.15154 (its zero probability and variance are ours)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from roshap.datasets.readers.raw import RawTable
from roshap.errors import ConfigError


def read(
    files: Mapping[str, Path],
    *,
    n: Annotated[int, Field(ge=2)] = 600,
    p: Annotated[int, Field(ge=1)] = 1000,
    signals: Annotated[int, Field(ge=0)] = 10,
    delta_max: float = 1.5,
    delta_min: float = 0.4,
    zero_probability: Annotated[float, Field(ge=0, lt=1)] = 0.5,
    seed: Annotated[int, Field(ge=0)] = 0,
) -> RawTable:
    """Draw ``X_ij = 0`` with probability q, else ``Normal(+-delta_j / 2, 1)`` by class.

    Parameters
    ----------
    files
        Not used: nothing is read.
    n, p
        Rows (halves of class 0 and 1) and features.
    signals
        Features with delta > 0; they come first, strongest first. The others have mean 0.
    delta_max, delta_min
        Difference of the class means, evenly spaced over the signals.
    zero_probability
        q above.
    seed
        Of this data set alone.
    """
    if signals > p:
        raise ConfigError(f"dataset.reader_options.signals={signals} exceeds p={p}")
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 2)
    X = rng.standard_normal((n, p))
    delta = np.linspace(delta_max, delta_min, signals)
    X[:, :signals] += np.outer(y - 0.5, delta)
    X[rng.random((n, p)) < zero_probability] = 0.0
    frame = pd.DataFrame(X, columns=names(signals, p - signals))
    frame["y"] = y
    return RawTable(frame)


def names(signals: int, noise: int) -> list[str]:
    """``signal_01``.. then ``noise_0001``..: the truth is in the name, sorted as counted."""
    wide, wider = max(2, len(str(signals))), max(4, len(str(noise)))
    return [f"signal_{j:0{wide}d}" for j in range(1, signals + 1)] + [
        f"noise_{j:0{wider}d}" for j in range(1, noise + 1)
    ]
