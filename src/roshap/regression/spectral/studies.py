"""How good filters and rules are, where the solution is known."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from roshap.regression.spectral.errors import ParameterWarning
from roshap.regression.spectral.filters import Array, Filter, make_filter
from roshap.regression.spectral.levels import Levels
from roshap.regression.spectral.rules import Choice, choose
from roshap.regression.spectral.solve import decompose, solutions, solve
from roshap.regression.spectral.spectrum import Path


@dataclass(frozen=True)
class Followed:
    """A filter's path on a problem with a known solution.

    Attributes
    ----------
    filter : str
    path : Path
    errors : ndarray of shape (L,)
        ``||x - x_true|| / ||x_true||`` at each level.
    choices : dict of str to Choice
        What each rule took.
    """

    filter: str
    path: Path
    errors: Array
    choices: dict[str, Choice]

    @property
    def best(self) -> int:
        """Place of the smallest error."""
        return int(np.argmin(self.errors))


def follow(
    A: Any,
    b: Array,
    x: Array,
    filter: str | Filter,
    rules: Sequence[str],
    *,
    delta: float,
    levels: Levels = 50,
) -> Followed:
    """Follow one filter and let every rule choose from the same path.

    Parameters
    ----------
    A : matrix or Decomposition
    b, x : ndarray
        Noisy data and the true solution.
    filter : str or Filter
    rules : sequence of str
        Without ``kfold``.
    delta : float
        Norm of the noise.
    levels : int or sequence of float
    """
    operator = decompose(A)
    size = float(np.linalg.norm(x))
    errors = [
        float(np.linalg.norm(found - x.ravel())) / size
        for _, found in solutions(operator, b, filter, levels)
    ]
    with warnings.catch_warnings():
        # a choice keeps its own warning; here it is a result
        warnings.simplefilter("ignore", ParameterWarning)
        path = solve(operator, b, filter, rules[0], levels=levels, delta=delta).path
    chosen = {rule: choose(path, rule, delta=delta) for rule in rules}
    lean = dataclasses.replace(path, coefficients=None)
    return Followed(make_filter(filter).name, lean, np.array(errors), chosen)


def table_of(followed: Sequence[Followed]) -> pd.DataFrame:
    """Return a row for each filter and rule: what was chosen, its error and the best one.

    ``ratio`` is the error over the smallest on the path: 1 is the best that the rule could do.
    """
    rows = []
    for item in followed:
        for rule, choice in item.choices.items():
            error, best = item.errors[choice.index], item.errors[item.best]
            rows.append(
                {
                    "filter": item.filter,
                    "rule": rule,
                    "parameter": item.path.parameter,
                    "value": choice.value,
                    "best_value": float(item.path.levels[item.best]),
                    "error": float(error),
                    "best_error": float(best),
                    "ratio": float(error / best),
                    "warning": choice.warning or "",
                }
            )
    return pd.DataFrame(rows)
