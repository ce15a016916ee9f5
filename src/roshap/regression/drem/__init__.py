"""Dynamic regressor extension and mixing (DREM)."""

from __future__ import annotations

from roshap.regression.drem.hybrid import HybridRegressor
from roshap.regression.drem.regressor import DREMRegressor

__all__ = ["DREMRegressor", "HybridRegressor"]
