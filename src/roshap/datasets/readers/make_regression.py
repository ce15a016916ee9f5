"""scikit-learn's linear regression problem with known informative features."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import pandas as pd
from pydantic import Field

from roshap.datasets.readers.raw import RawTable
from roshap.datasets.readers.simulation import names
from roshap.errors import ConfigError


def read(
    files: Mapping[str, Path],
    *,
    n: Annotated[int, Field(ge=2)] = 500,
    p: Annotated[int, Field(ge=1)] = 50,
    informative: Annotated[int, Field(ge=0)] = 8,
    noise: Annotated[float, Field(ge=0)] = 10.0,
    seed: Annotated[int, Field(ge=0)] = 0,
) -> RawTable:
    """Draw n rows of ``y = X w + noise * Normal(0, 1)``; w is not 0 for the first features.

    Parameters
    ----------
    files
        Not used: nothing is read.
    n, p
        Rows and features.
    informative
        Features with a weight; they come first, named ``signal_..``.
    noise
        Standard deviation of the noise, in units of the target.
    seed
        Of this data set alone.
    """
    from sklearn.datasets import make_regression

    if informative > p:
        raise ConfigError(f"dataset.reader_options.informative={informative} exceeds p={p}")
    X, y = make_regression(
        n_samples=n,
        n_features=p,
        n_informative=informative,
        noise=noise,
        shuffle=False,
        random_state=seed,
    )
    frame = pd.DataFrame(X, columns=names(informative, p - informative))
    frame["y"] = y
    return RawTable(frame)
