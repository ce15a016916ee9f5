"""SHAP values by permutation sampling, for models that nothing else explains.

Own code rather than ``shap.PermutationExplainer``: that one seeds numpy's global generator, its
values of a row depend on the rows before it, and it takes a feature whose value is within 1e-5
(relative) of the background's for unchanged, which gives 0 to features with a large offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from roshap.attribution.explainers.base import ChunkedExplainer
from roshap.attribution.explainers.outputs import n_outputs, raw_output, space
from roshap.models import Task

if TYPE_CHECKING:
    from roshap.attribution.explainers.base import Table

#: Background rows that stand in for absent features, and permutations per row.
BACKGROUND_ROWS = 50
PERMUTATIONS = 5


class PermutationExplainer(ChunkedExplainer):
    """Antithetic permutation sampling of the interventional game.

    Features are switched from the background's values to the row's in the order of a permutation
    and of its reverse; a feature's value is the mean change at its switch (Castro et al. 2009;
    Mitchell et al. 2022). The values add up to ``f(x) - mean f(background)`` exactly, and are
    exact for models with interactions of at most two features. The same permutations serve every
    row.

    Attributes
    ----------
    evaluations_per_row : int
        Model evaluations for one row, the cost of this method: 2 p x permutations x background
        rows. 1000 features cost 500 000 evaluations a row.
    """

    name = "permutation"

    def __init__(
        self, model: Any, background: Table, task: Task, chunk_mb: float, rng: np.random.Generator
    ) -> None:
        p = background.shape[1]
        super().__init__(p, n_outputs(model, task), space(model, task), chunk_mb)
        self._model = model
        self._task = task
        self._codec = _Codec(background)
        rows = np.sort(rng.permutation(len(background))[:BACKGROUND_ROWS])
        self._background = self._codec.encode(background)[rows]
        self._orders = np.stack([rng.permutation(p) for _ in range(PERMUTATIONS)])
        # masked rows per model call: chunk_mb of features
        self._states = max(1, int(chunk_mb * 2**20 / (8 * p * len(rows))))
        self.evaluations_per_row = 2 * p * PERMUTATIONS * len(rows)

    def _explain(self, X: Table) -> np.ndarray:
        return np.stack([self._explain_row(x) for x in self._codec.encode(X)])

    def _explain_row(self, x: np.ndarray) -> np.ndarray:
        """Return the values of one row, (p, K)."""
        same = (x == self._background) | (np.isnan(x) & np.isnan(self._background))
        varying = ~same.all(axis=0)  # the others' values are exactly 0
        forward = [order[varying[order]] for order in self._orders]
        orders = np.stack([*forward, *(order[::-1] for order in forward)])
        steps = np.diff(self._paths(x, orders), axis=1)
        phi = np.zeros((self.n_features, self.n_outputs))
        for order, step in zip(orders, steps, strict=True):
            phi[order] += step
        return phi / len(orders)

    def _paths(self, x: np.ndarray, orders: np.ndarray) -> np.ndarray:
        """Return the mean outputs on the way from the background to `x`.

        Parameters
        ----------
        orders : (r, d) int array
            The order in which each path takes the d features that differ from `x`.

        Returns
        -------
        (r, d + 1, K) array
            Mean over the background with the first 0, 1, ..., d features of the order from `x`.
        """
        paths, d = orders.shape
        place = np.full((paths, self.n_features), d)  # features that do not differ: never
        np.put_along_axis(place, orders, np.arange(d)[None, :], axis=1)
        means = np.empty((paths * (d + 1), self.n_outputs))
        for start in range(0, len(means), self._states):
            state = np.arange(start, min(start + self._states, len(means)))
            path, known = np.divmod(state, d + 1)
            mask = place[path] < known[:, None]
            rows = np.where(mask[:, None, :], x, self._background).reshape(-1, self.n_features)
            output = raw_output(self._model, self._codec.decode(rows), self._task)
            means[state] = output.reshape(len(state), -1, self.n_outputs).mean(axis=1)
        return means.reshape(paths, d + 1, self.n_outputs)


class _Codec:
    """Tables with category columns as float arrays of their codes, and back."""

    def __init__(self, X: Table) -> None:
        self._dtypes = None if isinstance(X, np.ndarray) else dict(X.dtypes)

    def encode(self, X: Table) -> np.ndarray:
        if isinstance(X, np.ndarray):
            return X
        columns = []
        for name in X.columns:
            column = X[name]
            if hasattr(column, "cat"):
                codes = column.cat.codes.to_numpy(dtype=np.float64)
                columns.append(np.where(codes < 0, np.nan, codes))
            else:
                columns.append(column.to_numpy(dtype=np.float64))
        return np.column_stack(columns)

    def decode(self, array: np.ndarray) -> Table:
        if self._dtypes is None:
            return array
        import pandas as pd

        columns: dict[Any, Any] = {}
        for (name, dtype), column in zip(self._dtypes.items(), array.T, strict=True):
            if isinstance(dtype, pd.CategoricalDtype):
                codes = np.where(np.isnan(column), -1, column).astype(np.int64)
                columns[name] = pd.Categorical.from_codes(codes, dtype=dtype)
            else:
                columns[name] = column
        return pd.DataFrame(columns)


def permutation_explainer(
    model: Any,
    background: Table,
    task: Task,
    *,
    chunk_mb: float,
    rng: np.random.Generator | None = None,
) -> PermutationExplainer:
    """Return the explainer of any model; a generator of seed 0 draws when none is passed."""
    rng = np.random.default_rng(0) if rng is None else rng
    return PermutationExplainer(model, background, task, chunk_mb, rng)
