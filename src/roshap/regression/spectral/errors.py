"""The package's own errors and warnings."""

from __future__ import annotations

from roshap.errors import ModelError


class SpectralError(ModelError, ValueError):
    """A parameter or an input that no filter can work with.

    Also a ``ValueError``: that is what scikit-learn's tools expect of an estimator.
    """


class ParameterWarning(UserWarning):
    """A rule found its optimum at an end of the path, or had nothing to choose from."""
