"""The error of an iteration that runs away."""

from __future__ import annotations

from roshap.errors import ModelError


class DivergenceError(ModelError):
    """An iteration has left the range of numbers.

    Attributes
    ----------
    history
        The epochs before, as in an estimator's ``history_``.
    """

    def __init__(self, message: str, history: dict[str, list[float]]) -> None:
        super().__init__(message)
        self.history = history
