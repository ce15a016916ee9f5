"""Collinear features: which belong together, and the attribution of a group as a whole.

Features are joined by average linkage on ``1 - |Spearman correlation|`` up to a threshold; exact
copies always belong together. In a run, a row's attribution to a group is the sum of its members'
attributions *before* the absolute value (ours; docs/certainty.md), so that what a model shares out
between interchangeable features is put together again.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from scipy.stats import rankdata

from roshap.attribution.row_summaries import unpack_rows
from roshap.compute.checkpoint import CheckpointStore
from roshap.errors import ConfigError

DEFAULT_THRESHOLD = 0.9

_BLOCK = 1024  # columns correlated with all others at a time
_SLACK = 1e-9  # a correlation of 1 is often 1 - 1e-16


@dataclass(frozen=True)
class Groups:
    """Features that belong together.

    Attributes
    ----------
    members
        Columns of each group of two or more, ascending; groups by their first column.
    copies
        Columns of each set of identical columns, ascending; subsets of groups.
    """

    members: tuple[tuple[int, ...], ...]
    copies: tuple[tuple[int, ...], ...]


def find_groups(X: pd.DataFrame, threshold: float = DEFAULT_THRESHOLD) -> Groups:
    """Cluster the columns of a table.

    The result does not depend on the order of the columns. Constant columns and, unless they are
    copies, categories stay alone; a missing value stands at the middle rank of its column.

    Parameters
    ----------
    X
        (n, p) table.
    threshold
        Mean absolute rank correlation, above 0 and up to 1, down to which clusters are joined.

    Raises
    ------
    ConfigError
        Where the threshold is out of range.
    """
    if not 0 < threshold <= 1:
        raise ConfigError(f"groups_threshold={threshold}: must be above 0 and at most 1")
    copies = _copies(X)
    ranks, columns = _unit_ranks(X)
    pairs = _close_pairs(ranks, threshold - _SLACK)
    for same in copies:
        places = np.flatnonzero(np.isin(columns, same))
        pairs += [(int(a), int(b)) for a, b in pairwise(places)]
    joined = [] if not pairs else _components(pairs, len(columns))
    names = X.columns.to_numpy()
    groups = []
    for component in joined:
        # of equal distances linkage takes the first: by name, not by place
        ordered = component[np.argsort(names[columns[component]].astype(str), kind="stable")]
        groups += _clusters(ranks, columns, ordered, copies, threshold)
    groups += [same for same in copies if not np.isin(same, columns).all()]  # of categories
    return Groups(tuple(sorted(groups)), copies)


def _copies(X: pd.DataFrame) -> tuple[tuple[int, ...], ...]:
    """Find sets of identical columns that are not constant."""
    found: defaultdict[bytes, list[int]] = defaultdict(list)
    for j in range(X.shape[1]):
        column = X.iloc[:, j]
        if isinstance(column.dtype, pd.CategoricalDtype):
            values: np.ndarray = column.cat.codes.to_numpy()
            kind = repr(column.cat.categories.tolist())
        else:
            values = column.to_numpy(dtype=np.float64) + 0.0  # -0.0 is 0.0
            kind = ""
        if len(values) and not (values == values[0]).all():
            digest = hashlib.sha256(kind.encode() + np.ascontiguousarray(values).tobytes())
            found[digest.digest()].append(j)
    return tuple(sorted(tuple(same) for same in found.values() if len(same) > 1))


def _unit_ranks(X: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Centred ranks of length 1 of the numeric, not constant columns (m, n), and which they are."""
    rows, columns = [], []
    for j in range(X.shape[1]):
        column = X.iloc[:, j]
        if isinstance(column.dtype, pd.CategoricalDtype):
            continue
        values = column.to_numpy(dtype=np.float64)
        there = ~np.isnan(values)
        ranks = np.zeros(len(values))
        ranks[there] = rankdata(values[there]) - (there.sum() + 1) / 2
        length = np.sqrt(np.sum(ranks**2))
        if length > 0:
            rows.append(ranks / length)
            columns.append(j)
    stacked = np.array(rows) if rows else np.empty((0, len(X)))
    return stacked, np.array(columns, dtype=np.intp)


def _close_pairs(ranks: NDArray[np.float64], least: float) -> list[tuple[int, int]]:
    """Pairs of rows whose correlation is at least ``least``: clusters lie inside what they connect.

    A merge by average linkage up to a threshold needs at least one such pair between its parts.
    """
    pairs: list[tuple[int, int]] = []
    for start in range(0, len(ranks), _BLOCK):
        found = np.abs(ranks[start : start + _BLOCK] @ ranks[start:].T) >= least
        i, j = np.nonzero(found)
        pairs += [(start + int(a), start + int(b)) for a, b in zip(i, j, strict=True) if a < b]
    return pairs


def _components(pairs: Sequence[tuple[int, int]], count: int) -> list[NDArray[np.intp]]:
    i, j = np.array(pairs).T
    graph = sparse.coo_array((np.ones(len(i)), (i, j)), shape=(count, count))
    _, label = sparse.csgraph.connected_components(graph, directed=False)
    order = np.argsort(label, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(label))[:-1])
    return [part for part in parts if len(part) > 1]


def _clusters(
    ranks: NDArray[np.float64],
    columns: NDArray[np.intp],
    component: NDArray[np.intp],
    copies: Sequence[tuple[int, ...]],
    threshold: float,
) -> list[tuple[int, ...]]:
    """Clusters of two or more inside one component, as columns of the table."""
    distance = 1 - np.minimum(np.abs(ranks[component] @ ranks[component].T), 1.0)
    distance[distance < _SLACK] = 0.0
    own = columns[component]
    for same in copies:
        inside = np.isin(own, same)
        distance[np.ix_(inside, inside)] = 0.0
    np.fill_diagonal(distance, 0.0)
    distance = (distance + distance.T) / 2
    tree = hierarchy.linkage(squareform(distance, checks=False), method="average")
    label = hierarchy.fcluster(tree, 1 - threshold + _SLACK, criterion="distance")
    found = (np.sort(own[label == number]) for number in np.unique(label))
    return [tuple(int(j) for j in cluster) for cluster in found if len(cluster) > 1]


def group_sums(
    store: CheckpointStore,
    runs: int,
    groups: Groups,
    shape: tuple[int, int],
    rows: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Sum |attribution to the group| over the out-of-bag rows of every run.

    Parameters
    ----------
    store
        Holds the replicates with their rows' attributions.
    runs
        B.
    groups
        G groups.
    shape
        (p, K).
    rows
        (m,) the kept rows. Where they are not all rows of the table, a run's sum is scaled up by
        its out-of-bag weight over that of its kept rows.
    weights
        (n,) weights of the rows, or None.

    Returns
    -------
    ndarray of shape (B, G, K)
    """
    sums = np.zeros((runs, len(groups.members), shape[1]))
    for index in range(runs):
        with store.read(index) as arrays:
            positions, phi = unpack_rows(arrays, len(rows), shape)
            total = float(arrays["oob_weight"])
        weight = np.ones(len(positions)) if weights is None else weights[rows[positions]]
        scale = total / weight.sum() if weight.sum() > 0 else 0.0
        for place, members in enumerate(groups.members):
            together = np.abs(phi[:, list(members), :].sum(axis=1, dtype=np.float64))
            sums[index, place] = scale * (weight @ together)
    return sums


def nine_digits(value: float) -> float:
    """Round to nine digits: what exact copies get differs by rounding only."""
    return float(f"{value:.9g}")


def unit_names(
    features: Sequence[str], groups: Sequence[Sequence[int]], strength: Mapping[int, float]
) -> list[str]:
    """Name each group after its leading member: ``radius (+2)``.

    Parameters
    ----------
    features
        (p,) names.
    groups
        Columns of each group.
    strength
        Column -> what decides who leads; of equals the first by name does.
    """
    names = []
    for members in groups:
        leader = min(members, key=lambda j: (-nine_digits(strength[j]), features[j]))
        names.append(f"{features[leader]} (+{len(members) - 1})")
    return names
