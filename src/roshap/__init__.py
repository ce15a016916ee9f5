"""roshap: robust SHAP rankings, with experiments that can be traced.

>>> import roshap
>>> result = roshap.rank_features(model, X, y)  # doctest: +SKIP
>>> result.table, result.claim                  # doctest: +SKIP

Names are imported on first use, so that ``import roshap`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roshap.attribution.selector import RoSHAPSelector
    from roshap.attribution.splitter import BootstrapOOB
    from roshap.result import Ranking, rank_features

__version__ = "0.1.0"

__all__ = ["BootstrapOOB", "Ranking", "RoSHAPSelector", "__version__", "rank_features"]

_HOME = {
    "BootstrapOOB": "roshap.attribution.splitter",
    "RoSHAPSelector": "roshap.attribution.selector",
    "Ranking": "roshap.result",
    "rank_features": "roshap.result",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
