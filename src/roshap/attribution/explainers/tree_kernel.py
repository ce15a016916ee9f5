"""Exact path-dependent TreeSHAP for every tree model, by quadrature over blocks of rows.

For a leaf with value w and a feature i on its path, let z_i be the product of the cover shares of
the edges that split on i, and o_i = 1 if the row satisfies all their conditions, else 0. The SHAP
value of the row is::

    phi_i = sum over leaves of  w (o_i - z_i) int_0^1 prod_{j != i} (t o_j + (1 - t) z_j) dt

The integrand is a polynomial whose degree is one less than the number of distinct features on the
path, so a few Gauss-Legendre nodes t_q give the integral to the rounding of a double
(see ``tree_layout.layout.quadrature_size``). The kernel walks each tree once per block of rows and
keeps, for the current path only,

- ``weight`` (P): the quadrature weight times the product of all factors above a node;
- ``below`` (G): the sum over the leaves under a node of value times the factors under it;
- ``state``: for each split on the path, which rows satisfied all conditions on its feature so far
  and now go left, and which go right.

A split on i with shares rho_l and rho_r, where z' is the product of the shares of the splits on i
above it and a' = 1 for rows that satisfied them, has ``f' = t a' + (1 - t) z'``. It multiplies the
left side by ``((1 - t) z' rho_l + t) / f'`` for rows that go left, by ``(1 - t) z' rho_l / f'`` for
rows that go right, and by ``rho_l`` where a' = 0; the right side alike. With additive shares,
repeated splits on one feature telescope into one term per split::

    phi_i += a' z' (a - rho_l) sum_q P_q (G_left - G_right)_q / f'_q^2,   a = 1 if left, else 0

Every row is a lane of its own: its result does not depend on the other rows of its block.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from roshap.attribution.explainers.outputs import n_outputs, space
from roshap.attribution.explainers.tree_layout import Forest, build_layout, read_trees
from roshap.errors import ModelError
from roshap.models import Task

if TYPE_CHECKING:
    from roshap.attribution.explainers.base import Table
    from roshap.attribution.explainers.tree_layout import TreeTable

# Rows of a block: enough that the work per node outweighs the bookkeeping, few enough that the
# current path stays in the second-level cache and the attributions of the block in the third.
_ROWS = 128
_LANES = 8  # a block is a multiple of the widest vector of doubles
_PATH_BYTES = 2**20
_BLOCK_BYTES = 2**22

# Leaf columns that one walk of a tree carries; more take further walks.
_COLUMNS = 8


def kernel_explainer(
    fitted: Any, task: Task, *, chunk_mb: float = 64.0
) -> TreeKernelExplainer | None:
    """Return the tree kernel for a fitted model.

    Parameters
    ----------
    fitted : estimator
        A fitted tree model of scikit-learn, XGBoost or LightGBM (no pipeline).
    task : {"binary", "multiclass", "regression"}
        What the model predicts.
    chunk_mb : float
        Cap on the attributions of one block of rows, MiB. The kernel takes at most 4 MiB.

    Returns
    -------
    TreeKernelExplainer or None
        ``None`` where the kernel cannot explain the model (categorical splits, dart, several
        targets, any other family) and another routine must.

    Raises
    ------
    ModelError
        The classifier was fitted to rows that lack a class.
    """
    table = read_trees(fitted, task)
    if table is None:
        return None
    return TreeKernelExplainer(
        table, n_outputs(fitted, task), space(fitted, task), chunk_mb=chunk_mb
    )


def compile_kernel(say: Callable[[str], None]) -> None:
    """Compile the kernel into numba's cache on disk, unless it is there.

    Worker processes that start together would each compile it. ``say`` is told of the wait.
    """
    if _is_compiled():
        return
    say("compiling the tree kernel, once on this machine (about 20 s)")
    from sklearn.tree import DecisionTreeRegressor

    X = np.arange(4.0)[:, None]
    explainer = kernel_explainer(DecisionTreeRegressor().fit(X, X[:, 0]), "regression")
    assert explainer is not None
    explainer.values(X)
    explainer.abs_sum(X)


def _is_compiled() -> bool:
    """Tell whether numba's cache holds the kernel of this source file."""
    written = Path(__file__).stat().st_mtime
    return all(
        any(
            path.stat().st_mtime >= written
            for path in Path(entry.stats.cache_path).glob(f"*.{entry.__name__}-*.nbi")
        )
        for entry in (_values, _abs_sum)
    )


class TreeKernelExplainer:
    """SHAP values of an ensemble of trees, with the covers of its training rows as background.

    Parameters
    ----------
    table : TreeTable
        The nodes of the ensemble.
    n_outputs : int
        K, the outputs that are explained.
    space : str
        Units of the attributions.
    chunk_mb : float
        Cap on the attributions of one block of rows, MiB; at least 8 rows are taken.

    Attributes
    ----------
    tree_mean : (K,) array
        Base value of the attributions, without the constant that a booster adds outside of its
        trees: the cover-weighted mean of the leaves, summed over trees.
    """

    name = "tree kernel"

    def __init__(
        self, table: TreeTable, n_outputs: int, space: str, *, chunk_mb: float = 64.0
    ) -> None:
        self.space = space
        self.n_features = table.n_features
        self.n_outputs = n_outputs
        self._forest = build_layout(table)
        self._complement = table.complement
        self._single_precision = table.single_precision
        self._quadrature = _quadrature(int(self._forest.layout.quadrature.max()))
        mean = self._forest.tree_mean
        self.tree_mean = np.append(mean, 1.0 - mean.sum()) if table.complement else mean
        self._max_rows = _block_rows(self._forest, n_outputs, chunk_mb)

    def values(self, X: Table) -> np.ndarray:
        """Return the attributions, (n, p, K) float64.

        Parameters
        ----------
        X : (n, p) float64 array, or a DataFrame of numbers
            May be read-only or memory-mapped. NaN is a missing value.

        Raises
        ------
        ModelError
            X has another number of columns than the model, or columns that are no numbers.
        """
        X = self._matrix(X)
        phi = np.zeros((len(X), self.n_features, self.n_outputs))
        _values(*self._arguments(X), phi)
        return phi

    def abs_sum(self, X: Table, sample_weight: np.ndarray | None = None) -> np.ndarray:
        """Return ``sum_i w_i |phi_ijk|`` over the rows i, (p, K) float64; weights default to 1.

        The sum is taken block by block inside the kernel: nothing of size n x p x K exists.

        Parameters
        ----------
        X : (n, p) float64 array, or a DataFrame of numbers
            As in :meth:`values`.
        sample_weight : (n,) array, optional
            Weights of the rows.

        Raises
        ------
        ModelError
            As in :meth:`values`, or `sample_weight` has another length than X.
        """
        X = self._matrix(X)
        weight = np.ones(len(X)) if sample_weight is None else np.array(sample_weight, np.float64)
        if weight.shape != (len(X),):
            raise ModelError(f"sample_weight has shape {weight.shape}; expected ({len(X)},)")
        total = np.zeros((self.n_features, self.n_outputs))
        _abs_sum(*self._arguments(X), weight, total)
        return total

    def _matrix(self, X: Table) -> np.ndarray:
        """Return X as the one type that the kernel is compiled for: read-only, C-ordered."""
        if not isinstance(X, np.ndarray):
            text = [str(name) for name, kind in X.dtypes.items() if kind.kind not in "biuf"]
            if text:
                raise ModelError(f"the tree kernel explains numbers; {text[0]!r} has none")
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ModelError(
                f"X has shape {X.shape}; the model was fitted to {self.n_features} features"
            )
        matrix = np.require(np.asarray(X), np.float64, ["C", "A"]).view(np.ndarray)
        matrix.flags.writeable = False
        return matrix

    def _arguments(self, X: np.ndarray) -> tuple[Any, ...]:
        """Arguments that both entry points of the kernel share."""
        forest = self._forest
        # blocks of nearly the same size, so that none is mostly padding
        blocks = max(1, -(-len(X) // self._max_rows))
        rows = _whole_lanes(-(-len(X) // blocks))
        return (
            forest.layout,
            self._quadrature,
            _new_workspace(forest, self.n_outputs - self._complement, rows),
            X,
            forest.used,
            self._single_precision,
            self._complement,
        )


def _block_rows(forest: Forest, n_outputs: int, chunk_mb: float) -> int:
    """Most rows of a block, so that path and attributions fit their caches."""
    columns = min(forest.layout.value.shape[2], _COLUMNS)
    nodes = int(forest.layout.quadrature.max())
    path = 8 * nodes * (1 + 2 * columns) * max(1, forest.levels)
    block = 8 * n_outputs * max(1, forest.used.size)
    block_bytes = min(_BLOCK_BYTES, int(chunk_mb * 2**20))
    rows = min(_ROWS, _PATH_BYTES // path, block_bytes // block)
    return max(_LANES, rows - rows % _LANES)


def _whole_lanes(rows: int) -> int:
    return max(_LANES, -(-rows // _LANES) * _LANES)


class _Quadrature(NamedTuple):
    """Gauss-Legendre rules on [0, 1]; row m holds the rule of m nodes."""

    t: np.ndarray
    weight: np.ndarray


@cache
def _quadrature(size: int) -> _Quadrature:
    """Return the rules of 1 to `size` nodes."""
    t, weight = np.zeros((size + 1, size)), np.zeros((size + 1, size))
    for m in range(1, size + 1):
        x, w = np.polynomial.legendre.leggauss(m)
        t[m, :m], weight[m, :m] = (x + 1) / 2, w / 2
    return _Quadrature(t, weight)


class _Workspace(NamedTuple):
    """State of one block of R rows along the current path of D levels.

    Row ``2 * depth + side`` stands for the edge from a node at ``depth`` to its child on a side.

    Attributes
    ----------
    x : (U, R) the used columns of the block's rows; lanes past the last row hold old numbers
    phi : (outputs, U, R) attributions
    weight : (D, m, R) P of the node at each depth
    below : (2 D, k, m, R) G of the last left and right node finished at each depth: row
        ``2 * depth + side``
    state : (2 D + 1, R) 1 where the row satisfies every condition on the edge's feature, down to
        this edge; the last row is all ones
    constant, left, right : (2 D, m) an edge's factor is
        ``constant + left * state[2 * depth] + right * state[2 * depth + 1]``
    scale : (D, m) 1 / f'^2
    total : (R,) sums over the quadrature nodes
    path : (D,) nodes of the current path
    """

    x: np.ndarray
    phi: np.ndarray
    weight: np.ndarray
    below: np.ndarray
    state: np.ndarray
    constant: np.ndarray
    left: np.ndarray
    right: np.ndarray
    scale: np.ndarray
    total: np.ndarray
    path: np.ndarray


def _new_workspace(forest: Forest, n_outputs: int, rows: int) -> _Workspace:
    """Allocate the state of one block of rows."""
    levels, m = forest.levels, int(forest.layout.quadrature.max())
    columns = min(forest.layout.value.shape[2], _COLUMNS)
    return _Workspace(
        x=np.zeros((forest.used.size, rows)),
        phi=np.empty((n_outputs, forest.used.size, rows)),
        weight=np.empty((levels, m, rows)),
        below=np.empty((2 * levels, columns, m, rows)),
        state=np.ones((2 * levels + 1, rows)),
        constant=np.empty((2 * levels, m)),
        left=np.empty((2 * levels, m)),
        right=np.empty((2 * levels, m)),
        scale=np.empty((levels, m)),
        total=np.empty(rows),
        path=np.empty(levels, np.int64),
    )


# `contract` lets a product and a sum become one fused operation. The other fast-math flags assume
# that there is no NaN, which a missing value is.
_compile = njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
_inline = njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy", forceinline=True)


@_compile
def _values(layout, rules, work, X, used, single, complement, out):  # type: ignore[no-untyped-def]  # numba infers the types
    """Write the attributions of the rows of X to ``out`` (n, p, K), which holds zeros."""
    phi = work.phi
    n_outputs, n_used, rows = phi.shape
    for start in range(0, X.shape[0], rows):
        size = min(rows, X.shape[0] - start)
        _load(X, start, size, used, single, work.x)
        _explain_block(layout, rules, work)
        for r in range(size):
            for u in range(n_used):
                rest = 0.0
                for k in range(n_outputs):
                    out[start + r, used[u], k] = phi[k, u, r]
                    rest -= phi[k, u, r]
                if complement:
                    out[start + r, used[u], n_outputs] = rest


@_compile
def _abs_sum(  # type: ignore[no-untyped-def]  # numba infers the types
    layout, rules, work, X, used, single, complement, row_weight, out
):
    """Add the weighted absolute attributions of the rows of X to ``out`` (p, K)."""
    phi = work.phi
    n_outputs, n_used, rows = phi.shape
    for start in range(0, X.shape[0], rows):
        size = min(rows, X.shape[0] - start)
        _load(X, start, size, used, single, work.x)
        _explain_block(layout, rules, work)
        for u in range(n_used):
            for r in range(size):
                w = row_weight[start + r]
                rest = 0.0
                for k in range(n_outputs):
                    out[used[u], k] += w * abs(phi[k, u, r])
                    rest += phi[k, u, r]
                if complement:
                    out[used[u], n_outputs] += w * abs(rest)


@_compile
def _load(X, start, size, used, single, x):  # type: ignore[no-untyped-def]
    """Copy a block of the used columns to ``x`` (U, R), rows along the vector lanes."""
    for r in range(size):
        for u in range(used.size):
            value = X[start + r, used[u]]
            x[u, r] = np.float64(np.float32(value)) if single else value


@_compile
def _explain_block(layout, rules, work):  # type: ignore[no-untyped-def]
    """Set ``work.phi`` to the attributions of the block ``work.x``."""
    n_outputs, n_used, rows = work.phi.shape
    for k in range(n_outputs):
        for u in range(n_used):
            for r in range(rows):
                work.phi[k, u, r] = 0.0
    columns = layout.value.shape[2]
    for tree in range(layout.quadrature.size):
        for first in range(0, columns, _COLUMNS):
            last = min(first + _COLUMNS, columns)
            _walk_tree(layout, rules, work, tree, first, last)


@_compile
def _walk_tree(layout, rules, work, tree, first, last):  # type: ignore[no-untyped-def]
    """Add one tree's attributions, for its leaf columns ``first`` to ``last``."""
    m = layout.quadrature[tree]
    output = layout.output[tree]
    for node in range(layout.tree_start[tree], layout.tree_start[tree + 1]):
        depth = layout.depth[node]
        work.path[depth] = node
        if depth == 0:
            for q in range(m):
                for r in range(work.total.size):
                    work.weight[0, q, r] = rules.weight[m, q]
        else:
            _descend(layout, work, depth, layout.side[node], m)
        _split_rows(layout, work, node, depth)
        _set_factors(layout, work, rules.t[m], node, depth, m)
        for _ in range(layout.closes[node]):
            for column in range(first, last):
                _close(layout, work, work.path[depth], m, output, column, column - first)
            depth -= 1


@_inline
def _descend(layout, work, depth, side, m):  # type: ignore[no-untyped-def]
    """Set P of the node at ``depth`` from its parent's and the factor of the edge between."""
    weight = work.weight
    edge = 2 * depth - 2
    goes_left = work.state[edge]
    goes_right = work.state[edge + 1]
    repeated = layout.ancestor[work.path[depth - 1]] >= 0
    for q in range(m):
        c = work.constant[edge + side, q]
        a = work.left[edge + side, q]
        b = work.right[edge + side, q]
        if repeated:
            for r in range(goes_left.size):
                factor = c + a * goes_left[r] + b * goes_right[r]
                weight[depth, q, r] = weight[depth - 1, q, r] * factor
        else:
            for r in range(goes_left.size):
                weight[depth, q, r] = weight[depth - 1, q, r] * (c + a * goes_left[r])


@_inline
def _split_rows(layout, work, node, depth):  # type: ignore[no-untyped-def]
    """Set the states of the edges below ``node``: the rows that still satisfy all conditions."""
    state = work.state
    threshold = layout.threshold[node]
    above = layout.ancestor[node]
    if above < 0:
        above = state.shape[0] - 1  # the row of ones
    value = work.x[layout.feature[node]]
    if layout.nan_left[node]:
        for r in range(value.size):
            alive = state[above, r]
            left = 0.0 if value[r] > threshold else alive
            state[2 * depth, r] = left
            state[2 * depth + 1, r] = alive - left
    else:
        for r in range(value.size):
            alive = state[above, r]
            left = alive if value[r] <= threshold else 0.0
            state[2 * depth, r] = left
            state[2 * depth + 1, r] = alive - left


@_inline
def _set_factors(layout, work, t, node, depth, m):  # type: ignore[no-untyped-def]
    """Set the factors of the two edges below ``node``, and 1 / f'^2."""
    repeated = layout.ancestor[node] >= 0
    earlier = layout.earlier[node]
    for q in range(m):
        inverse = 1.0 / (t[q] + (1.0 - t[q]) * earlier)
        hot = t[q] * inverse
        work.scale[depth, q] = inverse * inverse
        for side in range(2):
            share = layout.share[node, side]
            cold = (1.0 - t[q]) * earlier * share * inverse
            on_left = cold + hot if side == 0 else cold
            on_right = cold + hot if side == 1 else cold
            edge = 2 * depth + side
            # without an earlier split every row goes left or right: one term is enough
            work.constant[edge, q] = share if repeated else on_right
            work.left[edge, q] = on_left - work.constant[edge, q]
            work.right[edge, q] = on_right - work.constant[edge, q]


@_inline
def _close(layout, work, node, m, output, column, k):  # type: ignore[no-untyped-def]
    """Finish a node, whose children are known: set its G and add to its feature's attribution.

    ``k`` is the place in ``work.below`` of the leaf column ``column``.
    """
    depth = layout.depth[node]
    leaves = layout.leaves[node]
    target = 2 * depth + layout.side[node]
    for r in range(work.total.size):
        work.total[r] = 0.0
    sign = 1.0
    if leaves == 3:
        _close_twig(layout, work, node, depth, m, target, column, k)
    elif leaves == 0:
        _close_fork(layout, work, node, depth, m, target, k)
    else:
        sign = _close_branch(layout, work, node, depth, m, target, column, k)
    _add(layout, work, node, depth, output + column, sign)
    if layout.excess[node] != 0.0:
        _correct(layout, work, node, depth, m, target, column, k, output)


@_inline
def _close_twig(layout, work, node, depth, m, target, column, k):  # type: ignore[no-untyped-def]
    """Two leaves: as a fork, with the same gap for all rows."""
    edge = 2 * depth
    below, weight, total = work.below, work.weight, work.total
    goes_left = work.state[edge]
    goes_right = work.state[edge + 1]
    repeated = layout.ancestor[node] >= 0
    right = layout.value[node, 1, column]
    gap = layout.value[node, 0, column] - right
    for q in range(m):
        scale = gap * work.scale[depth, q]
        c = right + gap * work.constant[edge, q]
        a = gap * work.left[edge, q]
        b = gap * work.right[edge, q]
        if repeated:
            for r in range(total.size):
                total[r] += scale * weight[depth, q, r]
                below[target, k, q, r] = c + a * goes_left[r] + b * goes_right[r]
        else:
            for r in range(total.size):
                total[r] += scale * weight[depth, q, r]
                below[target, k, q, r] = c + a * goes_left[r]


@_inline
def _close_fork(layout, work, node, depth, m, target, k):  # type: ignore[no-untyped-def]
    """No leaf: ``G = G_right + M_left (G_left - G_right)``."""
    edge = 2 * depth
    below, weight, total = work.below, work.weight, work.total
    goes_left = work.state[edge]
    goes_right = work.state[edge + 1]
    repeated = layout.ancestor[node] >= 0
    for q in range(m):
        scale = work.scale[depth, q]
        c = work.constant[edge, q]
        a = work.left[edge, q]
        b = work.right[edge, q]
        if repeated:
            for r in range(total.size):
                right = below[edge + 3, k, q, r]
                gap = below[edge + 2, k, q, r] - right
                factor = c + a * goes_left[r] + b * goes_right[r]
                total[r] += scale * weight[depth, q, r] * gap
                below[target, k, q, r] = right + factor * gap
        else:
            for r in range(total.size):
                right = below[edge + 3, k, q, r]
                gap = below[edge + 2, k, q, r] - right
                total[r] += weight[depth, q, r] * gap
                below[target, k, q, r] = right + (c + a * goes_left[r]) * gap


@_inline
def _close_branch(layout, work, node, depth, m, target, column, k):  # type: ignore[no-untyped-def]
    """One leaf: ``G = leaf + M_inner (G_inner - leaf)``; return the sign of left minus right."""
    edge = 2 * depth
    below, weight, total = work.below, work.weight, work.total
    goes_left = work.state[edge]
    goes_right = work.state[edge + 1]
    repeated = layout.ancestor[node] >= 0
    leaf_side = layout.leaves[node] - 1  # bit 0 is a left leaf, bit 1 a right one
    inner = edge + 3 - leaf_side
    leaf = layout.value[node, leaf_side, column]
    for q in range(m):
        scale = work.scale[depth, q]
        c, a, b = work.constant[edge, q], work.left[edge, q], work.right[edge, q]
        if leaf_side == 0:  # the inner child is right: 1 - M_left
            c, a, b = 1.0 - c, -a, -b
        if repeated:
            for r in range(total.size):
                gap = below[inner, k, q, r] - leaf
                factor = c + a * goes_left[r] + b * goes_right[r]
                total[r] += scale * weight[depth, q, r] * gap
                below[target, k, q, r] = leaf + factor * gap
        else:
            for r in range(total.size):
                gap = below[inner, k, q, r] - leaf
                total[r] += weight[depth, q, r] * gap
                below[target, k, q, r] = leaf + (c + a * goes_left[r]) * gap
    return -1.0 if leaf_side == 0 else 1.0


@_inline
def _add(layout, work, node, depth, output, sign):  # type: ignore[no-untyped-def]
    """Add ``sign a' z' (a - rho_l) total`` to the attribution of the node's feature."""
    row = work.phi[output, layout.feature[node]]
    total = work.total
    earlier = sign * layout.earlier[node]
    on_left = earlier * (1.0 - layout.share[node, 0])
    on_right = -earlier * layout.share[node, 0]
    goes_left = work.state[2 * depth]
    goes_right = work.state[2 * depth + 1]
    for r in range(total.size):
        row[r] += total[r] * (on_left * goes_left[r] + on_right * goes_right[r])


@_inline
def _correct(layout, work, node, depth, m, target, column, k, output):  # type: ignore[no-untyped-def]
    """Add what is missing where ``rho_l + rho_r = 1 + e``: the right factor is not 1 - left.

    The exact forms are ``G = M_left G_left + M_right G_right`` and ``phi += a' sum_q P_q
    [(z' - z_hot) G_hot - z_cold G_cold] / f'^2``. Against the additive forms, with e the excess,
    G lacks ``(M_left + M_right - 1) G_right``, which is ``(1 - t) z' e / f' G_right`` (``e
    G_right`` where a' = 0), and phi lacks ``-a' z' e sum_q P_q G_right / f'^2``.
    """
    edge = 2 * depth
    below, weight, total = work.below, work.weight, work.total
    goes_left = work.state[edge]
    goes_right = work.state[edge + 1]
    leaf = layout.value[node, 1, column]
    is_leaf = layout.leaves[node] & 2 != 0
    for r in range(total.size):
        total[r] = 0.0
    for q in range(m):
        scale = work.scale[depth, q]
        c = work.constant[edge, q] + work.constant[edge + 1, q] - 1.0
        a = work.left[edge, q] + work.left[edge + 1, q]
        b = work.right[edge, q] + work.right[edge + 1, q]
        for r in range(total.size):
            right = leaf if is_leaf else below[edge + 3, k, q, r]
            total[r] += scale * weight[depth, q, r] * right
            below[target, k, q, r] += (c + a * goes_left[r] + b * goes_right[r]) * right
    row = work.phi[output + column, layout.feature[node]]
    missing = -layout.earlier[node] * layout.excess[node]
    for r in range(total.size):
        row[r] += missing * total[r] * (goes_left[r] + goes_right[r])
