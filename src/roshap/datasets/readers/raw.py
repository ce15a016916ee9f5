"""What a reader hands over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True, eq=False)
class RawTable:
    """Columns as they are in the source, features and target together.

    Attributes
    ----------
    frame
        n rows; column names may be of any type.
    held_out
        (n,) bool, the rows that were published as a test set, or ``None``.
    """

    frame: pd.DataFrame
    held_out: np.ndarray | None = None
