"""Data sets: a YAML in, a checked and canonical table out.

>>> from roshap.datasets import from_frame
>>> data = from_frame(X, y)                       # a notebook  # doctest: +SKIP

>>> from roshap.datasets import fetch, load
>>> fetch(spec, directory, cache=cache)           # a stage     # doctest: +SKIP

Names are imported on first use, so that reading a :class:`DatasetSpec` needs pydantic only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roshap.datasets.checks import MIN_ROWS, check_dataset
    from roshap.datasets.dataset import Dataset, from_frame
    from roshap.datasets.download import Limits
    from roshap.datasets.fetching import fetch
    from roshap.datasets.readers import reader_names
    from roshap.datasets.spec import DatasetSpec, SourceSpec, UrlSpec
    from roshap.datasets.table import load

__all__ = [
    "MIN_ROWS",
    "Dataset",
    "DatasetSpec",
    "Limits",
    "SourceSpec",
    "UrlSpec",
    "check_dataset",
    "fetch",
    "from_frame",
    "load",
    "reader_names",
]

_HOME = {
    "MIN_ROWS": "checks",
    "check_dataset": "checks",
    "Dataset": "dataset",
    "from_frame": "dataset",
    "Limits": "download",
    "fetch": "fetching",
    "reader_names": "readers",
    "DatasetSpec": "spec",
    "SourceSpec": "spec",
    "UrlSpec": "spec",
    "load": "table",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
