"""Gradient descent: the references that DREM is compared with."""

from __future__ import annotations

from roshap.regression.gradient.classifier import AdamClassifierReference, SGDClassifierReference
from roshap.regression.gradient.regressor import AdamRegressorReference, SGDRegressorReference
from roshap.regression.gradient.rules import Adam, Rule, Sgd

__all__ = [
    "Adam",
    "AdamClassifierReference",
    "AdamRegressorReference",
    "Rule",
    "SGDClassifierReference",
    "SGDRegressorReference",
    "Sgd",
]
