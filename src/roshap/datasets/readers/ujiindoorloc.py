"""UJIIndoorLoc: Wi-Fi signal strengths and positions, read member by member from the archive."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from roshap.datasets.readers.numbers import EXACT
from roshap.datasets.readers.raw import RawTable

MEMBERS = ("UJIndoorLoc/trainingData.csv", "UJIndoorLoc/validationData.csv")
RAW_NOT_DETECTED = 100
WEAKEST, STRONGEST = -104, 0  # dBm, the range of the published signals


def read(files: Mapping[str, Path], *, not_detected: float = -105.0) -> RawTable:
    """Read the training rows, then the validation rows (held out).

    Parameters
    ----------
    files
        The archive.
    not_detected
        dBm written in place of the source's 100 for "not detected", so that an absent access
        point lies below the weakest signal (-104) and not above the strongest.
    """
    (path,) = files.values()
    with zipfile.ZipFile(path) as archive:
        parts = []
        for member in MEMBERS:
            with archive.open(member) as stream:
                parts.append(pd.read_csv(stream, **EXACT))
    frame = pd.concat(parts, ignore_index=True)
    signals = frame.columns[frame.columns.str.startswith("WAP")]
    strengths = frame[signals].to_numpy(dtype=np.float64)
    strengths[strengths == RAW_NOT_DETECTED] = not_detected
    held_out = np.arange(len(frame)) >= len(parts[0])
    recoded = pd.DataFrame(strengths, columns=signals)
    return RawTable(pd.concat([recoded, frame.drop(columns=signals)], axis=1), held_out)
