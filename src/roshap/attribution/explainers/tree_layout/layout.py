"""The flat layout that the tree kernel walks, and how any library's trees are brought into it.

A library's adapter fills a :class:`TreeTable`: every node of every tree, in the library's own
order. :func:`build_layout` turns that into a :class:`TreeLayout`: internal nodes only, in
preorder (left subtree first), trees one after the other, with everything a node needs from its
ancestors resolved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

# Error of a quadrature relative to the value of the leaf: under the rounding of a double.
_QUADRATURE_ERROR = 1e-16


@dataclass(frozen=True)
class TreeTable:
    """All nodes of an ensemble, as its library stores them.

    A row goes left where ``x <= threshold`` in double precision; a NaN goes left where
    ``nan_left`` is set.

    Attributes
    ----------
    tree_start
        (T + 1,) first node of each tree, which is its root; the last entry is the node count N.
    left, right
        (N,) children, counted from the first node of the tree; negative at a leaf.
    feature
        (N,) column of the split (any value at a leaf).
    threshold
        (N,) float64 thresholds.
    nan_left
        (N,) whether NaN goes left.
    cover
        (N,) training weight that reached the node.
    value
        (N, k) leaf values, already scaled so that a prediction is the plain sum over trees.
    output
        (T,) output that column 0 of ``value`` adds to.
    n_features
        Columns of the matrices to explain.
    n_outputs
        Outputs that the trees add to.
    complement
        One more output follows that is minus the sum of the others (class probabilities).
    single_precision
        The library rounds the matrix to float32 before it compares.
    """

    tree_start: np.ndarray
    left: np.ndarray
    right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    nan_left: np.ndarray
    cover: np.ndarray
    value: np.ndarray
    output: np.ndarray
    n_features: int
    n_outputs: int
    complement: bool
    single_precision: bool


class TreeLayout(NamedTuple):
    """Internal nodes of all trees in preorder; V nodes, T trees, k columns of leaf values.

    Attributes
    ----------
    tree_start : (T + 1,) first internal node of each tree
    quadrature : (T,) Gauss-Legendre nodes of each tree
    output : (T,) output that leaf column 0 adds to
    feature : (V,) index into the used features
    threshold : (V,) float64
    nan_left : (V,) bool
    share : (V, 2) cover of the left and the right child over the cover of the node
    excess : (V,) ``share.sum(axis=1) - 1``, set to 0 where it is rounding alone
    earlier : (V,) product of the shares on the path that belong to splits on the same feature (z')
    ancestor : (V,) state row ``2 * depth + side`` of the nearest edge above on the same feature;
        -1 without one
    depth : (V,) depth of the node, 0 at the root
    side : (V,) 0 for a left child (and the root), 1 for a right child
    leaves : (V,) bit 0: the left child is a leaf; bit 1: the right child is a leaf
    value : (V, 2, k) values of the children that are leaves, less the mean of the tree where
        the shares are additive (a constant per tree changes no attribution, and its removal
        keeps digits when the target has a large offset)
    closes : (V,) nodes of the path, this one first, whose last internal descendant is this node
    """

    tree_start: np.ndarray
    quadrature: np.ndarray
    output: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    nan_left: np.ndarray
    share: np.ndarray
    excess: np.ndarray
    earlier: np.ndarray
    ancestor: np.ndarray
    depth: np.ndarray
    side: np.ndarray
    leaves: np.ndarray
    value: np.ndarray
    closes: np.ndarray


@dataclass(frozen=True)
class Forest:
    """A layout with what belongs to the ensemble as a whole.

    Attributes
    ----------
    layout
        The nodes.
    used
        (U,) the columns that occur in a split, ascending; ``layout.feature`` points into them.
    levels
        Depth of the deepest internal node plus 1.
    tree_mean
        (n_outputs,) sum over trees of the cover-weighted mean of the leaves: the base value of
        the attributions, without the constant that a booster adds outside its trees.
    """

    layout: TreeLayout
    used: np.ndarray
    levels: int
    tree_mean: np.ndarray


def build_layout(table: TreeTable) -> Forest:
    """Bring a table of nodes into the order and form of the kernel.

    Parameters
    ----------
    table
        Every node of the ensemble; ids need not be in any particular order.
    """
    internal = table.left >= 0
    used, position = np.unique(table.feature[internal], return_inverse=True)
    feature = np.zeros(table.left.size, np.int64)
    feature[internal] = position
    n_trees, n_internal = table.tree_start.size - 1, int(internal.sum())
    layout = _empty_layout(n_trees, n_internal, table.value.shape[1])
    layout.output[:] = table.output
    tree_mean = np.zeros(table.n_outputs)
    widest = np.zeros(n_trees, np.int64)
    smallest = np.ones(n_trees)
    levels = _fill_layout(
        np.ascontiguousarray(table.tree_start, np.int64),
        np.ascontiguousarray(table.left, np.int64),
        np.ascontiguousarray(table.right, np.int64),
        feature,
        np.ascontiguousarray(table.threshold, np.float64),
        np.ascontiguousarray(table.nan_left, np.bool_),
        np.ascontiguousarray(table.cover, np.float64),
        np.ascontiguousarray(table.value, np.float64),
        layout,
        tree_mean,
        widest,
        smallest,
    )
    layout.quadrature[:] = quadrature_size(widest, smallest)
    return Forest(layout, used.astype(np.int64), levels, tree_mean)


def quadrature_size(n_features: np.ndarray, leaf_share: np.ndarray) -> np.ndarray:
    """Gauss-Legendre nodes that integrate the leaves of a tree to the rounding of a double.

    The integrand of a leaf with d distinct features on its path is a polynomial of degree d - 1,
    for which ceil(d / 2) nodes are exact. Fewer do for long paths: the integrand is at most
    ``prod_j |t + (1 - t) z_j|`` with ``prod_j z_j = z``, the leaf's share of the cover, and on the
    Bernstein ellipse of radius r around [0, 1], which reaches out to ``T = 1/2 + (r + 1/r) / 4``,
    at most ``(T + (1 - T) z^(1/d))^d`` (each factor's logarithm is concave in log z_j, so equal
    z_j are the worst). The error of m nodes is then at most ``32/15 (that) / (r^(2m) (1 - r^-2))``
    for every r > 1 (Trefethen, "Is Gauss quadrature better than Clenshaw-Curtis?", SIAM Review
    2008, theorem 4.5).

    Parameters
    ----------
    n_features : (T,) int array
        Most distinct features on a path of each tree.
    leaf_share : (T,) array
        Smallest share of the cover of a leaf of each tree.
    """
    radius = np.geomspace(1.05, 1000.0, 200)
    reach = 0.5 + (radius + 1.0 / radius) / 4.0
    degree = np.maximum(n_features, 1)[:, None]
    z = np.clip(leaf_share, 0.0, 1.0)[:, None] ** (1.0 / degree)
    log_size = degree * np.log(reach + (1.0 - reach) * z) - np.log1p(-(radius**-2))
    enough = (np.log(32.0 / 15.0 / _QUADRATURE_ERROR) + log_size) / (2.0 * np.log(radius))
    bound = np.ceil(enough.min(axis=1)).astype(np.int64)
    return np.maximum(1, np.minimum((n_features + 1) // 2, bound))


def _empty_layout(n_trees: int, n_nodes: int, n_columns: int) -> TreeLayout:
    def ints() -> np.ndarray:
        return np.zeros(n_nodes, np.int64)

    def floats() -> np.ndarray:
        return np.zeros(n_nodes)

    return TreeLayout(
        tree_start=np.zeros(n_trees + 1, np.int64),
        quadrature=np.ones(n_trees, np.int64),
        output=np.zeros(n_trees, np.int64),
        feature=ints(),
        threshold=floats(),
        nan_left=np.zeros(n_nodes, np.bool_),
        share=np.zeros((n_nodes, 2)),
        excess=floats(),
        earlier=floats(),
        ancestor=ints(),
        depth=ints(),
        side=ints(),
        leaves=ints(),
        value=np.zeros((n_nodes, 2, n_columns)),
        closes=ints(),
    )


@njit(cache=True, nogil=True)
def _fill_layout(  # type: ignore[no-untyped-def]  # numba infers the types
    tree_start,
    left,
    right,
    feature,
    threshold,
    nan_left,
    cover,
    value,
    layout,
    tree_mean,
    widest,
    smallest,
):
    """Fill ``layout`` but for the quadrature; return the number of levels of internal nodes.

    Per tree, ``tree_mean`` gains the mean leaf, ``widest`` the most distinct features on a path,
    ``smallest`` the smallest share of a leaf.
    """
    stack = np.zeros((left.size + 1, 3), np.int64)  # node, depth, side
    path = np.zeros(left.size + 1, np.int64)  # the layout's node at each depth
    distinct = np.zeros(left.size + 1, np.int64)  # features on the path down to each depth
    reach = np.ones(left.size + 1)  # product of the shares down to each depth
    mean = np.zeros(value.shape[1])
    count = 0
    levels = 0
    for tree in range(tree_start.size - 1):
        root = tree_start[tree]
        first = count
        layout.tree_start[tree] = first
        mean[:] = 0.0
        additive = True
        pending = 0
        if left[root] >= 0:
            stack[0, 0] = root
            stack[0, 1] = 0
            stack[0, 2] = 0
            pending = 1
        else:
            for k in range(mean.size):
                mean[k] = value[root, k]
        while pending > 0:
            pending -= 1
            node = stack[pending, 0]
            depth = stack[pending, 1]
            side = stack[pending, 2]
            path[depth] = count
            levels = max(levels, depth + 1)
            layout.feature[count] = feature[node]
            layout.threshold[count] = threshold[node]
            layout.nan_left[count] = nan_left[node]
            layout.depth[count] = depth
            layout.side[count] = side
            reach[depth] = 1.0
            if depth > 0:
                reach[depth] = reach[depth - 1] * layout.share[path[depth - 1], side]
            _set_shares(
                layout, count, cover[node], cover[root + left[node]], cover[root + right[node]]
            )
            additive = additive and layout.excess[count] == 0.0
            repeated = _find_ancestor(layout, path, depth)
            distinct[depth] = 1 - repeated
            if depth > 0:
                distinct[depth] += distinct[depth - 1]
            widest[tree] = max(widest[tree], distinct[depth])
            for which in (1, 0):  # the left child is pushed last, so it comes next
                child = root + (left[node] if which == 0 else right[node])
                if left[child] >= 0:
                    stack[pending, 0] = child
                    stack[pending, 1] = depth + 1
                    stack[pending, 2] = which
                    pending += 1
                    continue
                layout.leaves[count] |= 1 << which
                share = reach[depth] * layout.share[count, which]
                smallest[tree] = min(smallest[tree], share)
                for k in range(mean.size):
                    layout.value[count, which, k] = value[child, k]
                    mean[k] += share * value[child, k]
            layout.closes[count] = _count_closed(layout, path, depth)
            count += 1
        for k in range(mean.size):
            tree_mean[layout.output[tree] + k] += mean[k]
            if additive:
                for node in range(first, count):
                    layout.value[node, 0, k] -= mean[k]
                    layout.value[node, 1, k] -= mean[k]
    layout.tree_start[tree_start.size - 1] = count
    return levels


@njit(cache=True, nogil=True)
def _set_shares(layout, count, cover, cover_left, cover_right):  # type: ignore[no-untyped-def]
    """Cover ratios of the children; a node that no weight reached is split in halves."""
    if not cover > 0.0:
        layout.share[count, 0] = 0.5
        layout.share[count, 1] = 0.5
        return
    share = cover_left / cover
    layout.share[count, 0] = share
    layout.share[count, 1] = 1.0 - share
    # Sums in double precision are additive but for rounding; float32 sums (xgboost) are not.
    excess = (cover_left + cover_right) / cover - 1.0
    if abs(excess) > 1e-12:
        layout.share[count, 1] = cover_right / cover
        layout.excess[count] = excess


@njit(cache=True, nogil=True)
def _find_ancestor(layout, path, depth):  # type: ignore[no-untyped-def]
    """Link the node at ``depth`` to the nearest edge above it on its feature; 1 if there is one."""
    node = path[depth]
    layout.ancestor[node] = -1
    layout.earlier[node] = 1.0
    for above in range(depth - 1, -1, -1):
        other = path[above]
        if layout.feature[other] == layout.feature[node]:
            side = layout.side[path[above + 1]]
            layout.ancestor[node] = 2 * above + side
            layout.earlier[node] = layout.earlier[other] * layout.share[other, side]
            return 1
    return 0


@njit(cache=True, nogil=True)
def _count_closed(layout, path, depth):  # type: ignore[no-untyped-def]
    """Nodes of the path, from ``depth`` up, whose subtree ends with the node at ``depth``."""
    if layout.leaves[path[depth]] != 3:
        return 0
    closed = 1
    while depth > 0:
        parent = path[depth - 1]
        if layout.side[path[depth]] == 0 and layout.leaves[parent] & 2 == 0:
            break
        closed += 1
        depth -= 1
    return closed
