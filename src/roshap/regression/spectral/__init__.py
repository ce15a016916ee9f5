"""Spectral filtering: regularisation of kernel regression and of linear inverse problems.

>>> from roshap.regression.spectral import SpectralRegressor, problem, solve
>>> model = SpectralRegressor("landweber", gamma=0.1, rule="loo").fit(X, y)   # doctest: +SKIP

>>> shaw = problem("shaw", 64)
>>> b, delta = shaw.noisy(0.01)
>>> solve(shaw.A, b, "tikhonov", "discrepancy", delta=delta).parameter
'lam'
"""

from __future__ import annotations

from roshap.regression.spectral.decomposition import Decomposition, DenseDecomposition
from roshap.regression.spectral.errors import ParameterWarning, SpectralError
from roshap.regression.spectral.estimators import SpectralClassifier, SpectralRegressor
from roshap.regression.spectral.filters import (
    FILTERS,
    TSVD,
    Filter,
    IteratedTikhonov,
    IterativeFilter,
    Landweber,
    NuMethod,
    ShiftFilter,
    Showalter,
    Tikhonov,
    make_filter,
)
from roshap.regression.spectral.operators import (
    CosineBlur,
    FourierBlur,
    KroneckerOperator,
    gaussian_psf,
)
from roshap.regression.spectral.problems import PROBLEMS, Problem, noise, problem
from roshap.regression.spectral.rules import RULE_NAMES, Choice, choose
from roshap.regression.spectral.solve import Solution, decompose, solutions, solve
from roshap.regression.spectral.spectrum import Path, Spectrum

__all__ = [
    "FILTERS",
    "PROBLEMS",
    "RULE_NAMES",
    "TSVD",
    "Choice",
    "CosineBlur",
    "Decomposition",
    "DenseDecomposition",
    "Filter",
    "FourierBlur",
    "IteratedTikhonov",
    "IterativeFilter",
    "KroneckerOperator",
    "Landweber",
    "NuMethod",
    "ParameterWarning",
    "Path",
    "Problem",
    "ShiftFilter",
    "Showalter",
    "Solution",
    "SpectralClassifier",
    "SpectralError",
    "SpectralRegressor",
    "Spectrum",
    "Tikhonov",
    "choose",
    "decompose",
    "gaussian_psf",
    "make_filter",
    "noise",
    "problem",
    "solutions",
    "solve",
]
