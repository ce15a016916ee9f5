"""Dynamic regressor extension and mixing (DREM)."""

from __future__ import annotations

from roshap.regression.drem.classifier import DREMClassifier
from roshap.regression.drem.hybrid import HybridRegressor
from roshap.regression.drem.regressor import DREMRegressor
from roshap.regression.drem.signal import (
    Delay,
    FirstOrder,
    Kreisselmeier,
    SignalDREM,
    excitation,
)

__all__ = [
    "DREMClassifier",
    "DREMRegressor",
    "Delay",
    "FirstOrder",
    "HybridRegressor",
    "Kreisselmeier",
    "SignalDREM",
    "excitation",
]
