"""Spambase: 4601 e-mails x 57 word, character and capital-run features; no header in the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from roshap.datasets.readers.numbers import EXACT
from roshap.datasets.readers.raw import RawTable

# Names and order: spambase.names of the UCI repository.
_WORDS = (
    "make address all 3d our over remove internet order mail receive will people report addresses "
    "free business email you credit your font 000 money hp hpl george 650 lab labs telnet 857 data "
    "415 85 technology 1999 parts pm direct cs meeting original project re edu table conference"
)
CHARACTERS = (";", "(", "[", "!", "$", "#")
CAPITAL_RUNS = ("average", "longest", "total")
COLUMNS = (
    *(f"word_freq_{word}" for word in _WORDS.split()),
    *(f"char_freq_{character}" for character in CHARACTERS),
    *(f"capital_run_length_{run}" for run in CAPITAL_RUNS),
    "class",
)
LABELS = {0: "ham", 1: "spam"}


def read(files: Mapping[str, Path]) -> RawTable:
    """Features named as in the repository's description, and ``class`` (ham or spam)."""
    (path,) = files.values()
    frame = pd.read_csv(path, header=None, names=list(COLUMNS), index_col=False, **EXACT)
    frame["class"] = frame["class"].map(LABELS)
    return RawTable(frame)
