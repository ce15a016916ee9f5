"""roshap: robust SHAP rankings, with experiments that can be traced."""

from __future__ import annotations

__version__ = "0.1.0"
