"""The tree kernel against exact rational arithmetic, on trees made by hand."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from math import factorial

import numpy as np
import pytest

from roshap.attribution.explainers.tree_kernel import TreeKernelExplainer
from roshap.attribution.explainers.tree_layout import TreeTable
from roshap.attribution.explainers.tree_layout.layout import quadrature_size

Node = dict[str, float]


def make_table(trees: list[list[Node]], p: int, seed: int = 0, n_values: int = 1) -> TreeTable:
    """A table of hand-made trees whose nodes are stored in a random order behind the root."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list[float]] = {
        key: [] for key in ("left", "right", "feature", "threshold", "nan_left", "cover")
    }
    values: list[np.ndarray] = []
    for nodes in trees:
        order = np.concatenate([[0], 1 + rng.permutation(len(nodes) - 1)]).astype(int)
        place = np.argsort(order)
        for old in order:
            node = nodes[old]
            for side in ("left", "right"):
                child = int(node[side])
                columns[side].append(-1 if child < 0 else place[child])
            for key in ("feature", "threshold", "nan_left", "cover"):
                columns[key].append(node[key])
            values.append(rng.normal(size=n_values))
    return TreeTable(
        tree_start=np.cumsum([0, *map(len, trees)]),
        left=np.array(columns["left"]),
        right=np.array(columns["right"]),
        feature=np.array(columns["feature"], int),
        threshold=np.array(columns["threshold"]),
        nan_left=np.array(columns["nan_left"], bool),
        cover=np.array(columns["cover"]),
        value=np.array(values),
        output=np.zeros(len(trees), int),
        n_features=p,
        n_outputs=n_values,
        complement=False,
        single_precision=False,
    )


def random_tree(
    rng: np.random.Generator, p: int, max_depth: int, *, excess: float = 0.0, empty: float = 0.0
) -> list[Node]:
    """A random tree; covers add up but for `excess`, and a share `empty` of nodes has none."""
    nodes: list[Node] = []

    def grow(depth: int, cover: float) -> int:
        place = len(nodes)
        nodes.append({"left": -1, "right": -1, "feature": 0, "threshold": 0.0})
        nodes[place] |= {"nan_left": float(rng.random() < 0.5), "cover": cover}
        if depth < max_depth and (depth == 0 or rng.random() < 0.85):
            share = 0.0 if rng.random() < empty else rng.uniform(0.05, 0.95)
            covers = cover * share, cover * (1.0 - share) * (1.0 + excess * rng.normal())
            nodes[place] |= {"feature": int(rng.integers(p)), "threshold": rng.normal() / 2}
            nodes[place]["left"] = grow(depth + 1, covers[0])
            nodes[place]["right"] = grow(depth + 1, covers[1])
        return place

    grow(0, 100.0)
    return nodes


def chain(rng: np.random.Generator, features: list[int]) -> list[Node]:
    """A tree that splits one leaf off at every level, left and right in turn.

    The shares are 3/4 (at 33 levels: 3^33 is exact) or 1/2, which keeps the fractions short.
    """
    nodes: list[Node] = []
    cover = 4.0 ** len(features)
    three_quarters = set(rng.permutation(len(features))[:33])
    for level, feature in enumerate(features):
        share = 0.75 if level in three_quarters else 0.5
        inner, leaf = 2 * level + 2, 2 * level + 1
        left, right = (leaf, inner) if level % 2 else (inner, leaf)
        node: Node = {"left": left, "right": right, "feature": feature, "cover": cover}
        nodes.append(node | {"threshold": rng.normal() / 4, "nan_left": 0.0})
        end: Node = {"left": -1, "right": -1, "feature": 0, "threshold": 0.0, "nan_left": 0.0}
        nodes.append(end | {"cover": cover * (1.0 - share)})
        cover *= share
    nodes.append(end | {"cover": cover})
    return nodes


def goes_left(table: TreeTable, node: int, x: np.ndarray) -> bool:
    value = x[table.feature[node]]
    return bool(table.nan_left[node] if np.isnan(value) else value <= table.threshold[node])


def shares(table: TreeTable, node: int, left: int, right: int) -> tuple[Fraction, Fraction]:
    cover = Fraction(table.cover[node])
    if cover == 0:
        return Fraction(1, 2), Fraction(1, 2)
    return Fraction(table.cover[left]) / cover, Fraction(table.cover[right]) / cover


def expectation(
    table: TreeTable, root: int, node: int, x: np.ndarray, known: set[int], k: int
) -> Fraction:
    """Value of a subtree for a row of which only the features `known` are given."""
    if table.left[node] < 0:
        return Fraction(table.value[node, k])
    left, right = root + table.left[node], root + table.right[node]
    if table.feature[node] in known:
        child = left if goes_left(table, node, x) else right
        return expectation(table, root, child, x, known, k)
    share_left, share_right = shares(table, node, left, right)
    return share_left * expectation(table, root, left, x, known, k) + share_right * expectation(
        table, root, right, x, known, k
    )


def brute_force(table: TreeTable, x: np.ndarray, k: int) -> list[Fraction]:
    """Shapley values from their definition: over all subsets of the features."""
    p = table.n_features
    game: dict[frozenset[int], Fraction] = {}
    for size in range(p + 1):
        for subset in combinations(range(p), size):
            game[frozenset(subset)] = sum(
                (
                    expectation(table, root, root, x, set(subset), k)
                    for root in table.tree_start[:-1]
                ),
                Fraction(0),
            )
    return [
        sum(
            Fraction(factorial(len(s)) * factorial(p - len(s) - 1), factorial(p))
            * (game[s | {i}] - game[s])
            for s in game
            if i not in s
        )
        for i in range(p)
    ]


Factors = dict[int, tuple[bool, Fraction]]


def leaf_paths(table: TreeTable, root: int, x: np.ndarray) -> Iterator[tuple[int, Factors]]:
    """Every leaf with (o, z) of each feature on its path."""
    stack: list[tuple[int, Factors]] = [(root, {})]
    while stack:
        node, factors = stack.pop()
        if table.left[node] < 0:
            yield node, factors
            continue
        children = root + table.left[node], root + table.right[node]
        feature = int(table.feature[node])
        satisfied, z = factors.get(feature, (True, Fraction(1)))
        left = goes_left(table, node, x)
        for child, share, hot in zip(
            children, shares(table, node, *children), (left, not left), strict=True
        ):
            stack.append((child, factors | {feature: (satisfied and hot, z * share)}))


def exact(table: TreeTable, x: np.ndarray, k: int) -> list[Fraction]:
    """Shapley values from the sum over leaves, each integral in closed form.

    The product of ``t + (1 - t) z_j`` over the n satisfied features is kept by its coefficients
    c_a of ``t^a (1 - t)^(n - a)``; the factors ``(1 - t) z_j`` of the others stand apart.
    """
    phi = [Fraction(0)] * table.n_features
    for root in table.tree_start[:-1]:
        for leaf, factors in leaf_paths(table, root, x):
            on = {i: z for i, (o, z) in factors.items() if o}
            off = {i: z for i, (o, z) in factors.items() if not o}
            product = [Fraction(1)]
            for z in on.values():
                product = [
                    (product[a - 1] if a else 0) + (z * product[a] if a < len(product) else 0)
                    for a in range(len(product) + 1)
                ]
            value = Fraction(table.value[leaf, k])
            for i, z in factors.items():
                others = Fraction(1)
                for j, z_j in off.items():
                    others *= z_j if j != i else 1
                if i in on:
                    rest, top = [Fraction(0)] * (len(product) - 1), Fraction(0)
                    for a in reversed(range(len(rest))):  # divide by t + (1 - t) z
                        top = product[a + 1] - z[1] * top
                        rest[a] = top
                    phi[i] += value * (1 - z[1]) * others * integral(rest, len(off))
                else:
                    phi[i] -= value * z[1] * others * integral(product, len(off) - 1)
    return phi


def integral(coefficients: list[Fraction], off: int) -> Fraction:
    n = len(coefficients) - 1
    return sum(
        (
            c * Fraction(factorial(a) * factorial(n - a + off), factorial(n + off + 1))
            for a, c in enumerate(coefficients)
        ),
        Fraction(0),
    )


def assert_close(actual: np.ndarray, expected: list[Fraction], tolerance: float) -> None:
    reference = np.array([float(value) for value in expected])
    np.testing.assert_allclose(actual, reference, rtol=0, atol=tolerance * abs(reference).max())


@pytest.mark.parametrize("excess", [0.0, 1e-2])
@pytest.mark.parametrize("empty", [0.0, 0.3])
@pytest.mark.parametrize("n_values", [1, 3])
def test_brute_force(excess: float, empty: float, n_values: int) -> None:
    # 4 features over 7 levels: every path repeats some
    rng = np.random.default_rng(5)
    trees = [random_tree(rng, 4, 7, excess=excess, empty=empty) for _ in range(4)]
    table = make_table(trees, 4, n_values=n_values)
    explainer = TreeKernelExplainer(table, n_values, "units")
    X = rng.normal(size=(3, 4))
    X[1, :2] = np.nan
    phi = explainer.values(X)
    for x, row in zip(X, phi, strict=True):
        for k in range(n_values):
            expected = brute_force(table, x, k)
            assert_close(row[:, k], expected, 1e-12)
            assert [*exact(table, x, k)] == expected  # the reference for deep trees


@pytest.mark.parametrize("n_features", [1, 20, 21, 40, 66])
def test_deep_paths(n_features: int) -> None:
    rng = np.random.default_rng(n_features)
    features = [*range(n_features), *rng.integers(n_features, size=6)]
    table = make_table([chain(rng, [int(i) for i in features])], n_features)
    X = rng.normal(size=(4, n_features))
    X[0] = np.where(leads_left(table, n_features), -9.0, 9.0)
    phi = TreeKernelExplainer(table, 1, "units").values(X)
    for x, row in zip(X, phi, strict=True):
        assert_close(row[:, 0], exact(table, x, 0), 1e-13)


@pytest.mark.parametrize("leaf_share", [0.0, 1e-12, 1e-4, 0.1])
def test_quadrature_size_is_enough(leaf_share: float) -> None:
    wide = np.arange(1, 90)
    sizes = quadrature_size(wide, np.full(wide.size, leaf_share))
    assert (sizes <= (wide + 1) // 2).all()
    assert (sizes[:12] == (wide[:12] + 1) // 2).all()
    for d, size in zip(wide, sizes, strict=True):
        x, w = np.polynomial.legendre.leggauss(size)
        z = leaf_share ** (1 / d)
        found = w / 2 @ (z + (1 - z) * (x + 1) / 2) ** (d - 1)
        np.testing.assert_allclose(found, (1 - z**d) / (d * (1 - z)), rtol=0, atol=1e-15)


def leads_left(table: TreeTable, p: int) -> np.ndarray:
    """Per feature of a chain, whether its first split leads on to the left: the longest way."""
    out = np.zeros(p, bool)
    node = 0
    seen: set[int] = set()
    while table.left[node] >= 0:
        left = table.left[node]
        leads = table.left[left] >= 0
        if table.feature[node] not in seen:
            out[table.feature[node]] = leads
            seen.add(int(table.feature[node]))
        node = left if leads else table.right[node]
    return out


def test_bushy_deep_trees() -> None:
    rng = np.random.default_rng(11)
    table = make_table([random_tree(rng, 30, 11) for _ in range(2)], 30)
    X = rng.normal(size=(2, 30))
    phi = TreeKernelExplainer(table, 1, "units").values(X)
    for x, row in zip(X, phi, strict=True):
        assert_close(row[:, 0], exact(table, x, 0), 1e-13)


def test_large_offset_keeps_digits() -> None:
    rng = np.random.default_rng(3)
    table = make_table([random_tree(rng, 5, 6)], 5)
    X = rng.normal(size=(20, 5))
    table.value[:] = np.round(table.value * 1024) / 1024  # exact with the offset, too
    phi = TreeKernelExplainer(table, 1, "units").values(X)
    table.value[:] += 2.0**30
    shifted = TreeKernelExplainer(table, 1, "units").values(X)
    np.testing.assert_allclose(shifted, phi, rtol=0, atol=1e-13 * abs(phi).max())


@pytest.mark.parametrize("excess", [0.0, 1e-3])
def test_sums_to_the_tree(excess: float) -> None:
    rng = np.random.default_rng(8)
    table = make_table([random_tree(rng, 6, 9, excess=excess) for _ in range(10)], 6)
    explainer = TreeKernelExplainer(table, 1, "units")
    X = rng.normal(size=(300, 6))
    known = set(range(6))
    output = [
        sum(float(expectation(table, root, root, x, known, 0)) for root in table.tree_start[:-1])
        for x in X
    ]
    total = explainer.values(X).sum(axis=1)[:, 0] + explainer.tree_mean[0]
    np.testing.assert_allclose(total, output, atol=1e-12)


def test_more_leaf_columns_than_one_walk_takes() -> None:
    rng = np.random.default_rng(4)
    trees = [random_tree(rng, 5, 5) for _ in range(3)]
    table = make_table(trees, 5, n_values=19)
    X = rng.normal(size=(9, 5))
    phi = TreeKernelExplainer(table, 19, "units").values(X)
    for k in (0, 7, 8, 18):
        assert_close(phi[2, :, k], exact(table, X[2], k), 1e-12)


def test_a_row_does_not_depend_on_its_block() -> None:
    rng = np.random.default_rng(2)
    table = make_table([random_tree(rng, 6, 8, excess=1e-6) for _ in range(5)], 6)
    explainer = TreeKernelExplainer(table, 1, "units")
    X = rng.normal(size=(301, 6))
    phi = explainer.values(X)
    assert phi.tobytes() == explainer.values(X).tobytes()
    assert phi[::-1].tobytes() == explainer.values(X[::-1]).tobytes()
    for i in (0, 7, 150, 300):
        assert phi[i].tobytes() == explainer.values(X[i : i + 1]).tobytes()
    narrow = TreeKernelExplainer(table, 1, "units", chunk_mb=1e-4)
    assert phi.tobytes() == narrow.values(X).tobytes()
