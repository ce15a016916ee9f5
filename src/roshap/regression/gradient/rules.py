"""Update rules of gradient descent, as arrays: the references that DREM is compared with."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from roshap.regression.design import Array


class Rule(Protocol):
    """How a gradient changes the weights."""

    def step(self, w: Array, gradient: Array) -> Array:
        """Return the next weights."""
        ...


class Sgd:
    """``w <- w - rate * gradient``."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def step(self, w: Array, gradient: Array) -> Array:
        """Return the next weights."""
        return w - self.rate * gradient


class Adam:
    """Adam (Kingma and Ba, arXiv 1412.6980, algorithm 1).

    The bias correction counts steps, as in the paper, not epochs.
    """

    def __init__(
        self, rate: float, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8
    ) -> None:
        self.rate, self.beta1, self.beta2, self.eps = rate, beta1, beta2, eps
        self.steps = 0
        self.first: Array | float = 0.0
        self.second: Array | float = 0.0

    def step(self, w: Array, gradient: Array) -> Array:
        """Return the next weights."""
        self.steps += 1
        self.first = self.beta1 * self.first + (1.0 - self.beta1) * gradient
        self.second = self.beta2 * self.second + (1.0 - self.beta2) * gradient**2
        mean = self.first / (1.0 - self.beta1**self.steps)
        square = self.second / (1.0 - self.beta2**self.steps)
        return np.asarray(w - self.rate * mean / (np.sqrt(square) + self.eps))
