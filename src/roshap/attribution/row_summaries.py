"""Attributions of single rows: how a replicate stores them, and their summaries over all runs.

A replicate keeps the attributions of the rows that were out of bag (OOB) among a fixed set of kept
rows, as float32, in parts of consecutive columns (feature x output). A part lies dense or, where
most of it is exactly zero, as the places and values of the rest. The summaries are computed block
of columns by block of columns, so that no array of rows x columns x runs is ever in memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from roshap.attribution.attributions import RowSummaries
from roshap.compute.checkpoint import CheckpointStore

OOB_SHARE = math.exp(-1.0)  # the limit of (1 - 1/n)^n, expected share of OOB rows
PART_VALUES = 65_536  # expected attributions in one part of one run
BLOCK_BYTES = 16 * 2**20  # attributions over all runs that are in memory at a time
PIECE_VALUES = 2**16  # of those, as many have float64 copies: they stay in the cache
LEVELS = (0.05, 0.5, 0.95)


def kept_rows(n: int, p: int, n_outputs: int, row_values: int) -> np.ndarray:
    """Return the rows whose attributions are kept: all, or an evenly spaced subset.

    Parameters
    ----------
    n, p, n_outputs
        Rows, features and outputs K. Nothing else decides, so that more runs change nothing.
    row_values
        Largest expected number of attributions that one run keeps.

    Returns
    -------
    numpy.ndarray
        (m,) row numbers, ascending; at least one.
    """
    m = int(row_values / (OOB_SHARE * p * n_outputs))
    if m >= n:
        return np.arange(n)
    return np.unique(np.linspace(0, n - 1, max(m, 1)).round().astype(np.int64))


def column_parts(n_kept: int, n_columns: int) -> list[slice]:
    """Return the parts in which columns (feature x output) are stored."""
    count = math.ceil(OOB_SHARE * n_kept * n_columns / PART_VALUES)
    edges = np.linspace(0, n_columns, min(max(count, 1), n_columns) + 1).round().astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


def pack_rows(positions: np.ndarray, phi: np.ndarray, n_kept: int) -> dict[str, np.ndarray]:
    """Return the arrays in which a replicate stores its rows.

    Parameters
    ----------
    positions
        (r,) positions, among the kept rows, of those that were OOB.
    phi
        (r, p, K) float32 attributions of these rows.
    n_kept
        Number of kept rows.
    """
    arrays = {"positions": positions.astype(np.int32)}
    columns = phi.reshape(len(positions), math.prod(phi.shape[1:]))
    for number, part in enumerate(column_parts(n_kept, columns.shape[1])):
        block = np.ascontiguousarray(columns[:, part])
        places = np.flatnonzero(block)
        if 2 * places.size < block.size:
            arrays[f"part{number}_places"] = places.astype(np.int32)
            arrays[f"part{number}_values"] = block.ravel()[places]
        else:
            arrays[f"part{number}"] = block
    return arrays


def unpack_rows(
    arrays: Mapping[str, np.ndarray], n_kept: int, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return what :func:`pack_rows` stored: positions (r,) and attributions (r, p, K)."""
    positions = arrays["positions"]
    size = len(positions)
    parts = [
        _unpack_part(arrays, number, (size, part.stop - part.start))
        for number, part in enumerate(column_parts(n_kept, math.prod(shape)))
    ]
    return positions, np.concatenate(parts, axis=1).reshape(size, *shape)


def _unpack_part(
    arrays: Mapping[str, np.ndarray], number: int, shape: tuple[int, int]
) -> np.ndarray:
    if f"part{number}" in arrays:
        return arrays[f"part{number}"]
    block = np.zeros(shape[0] * shape[1], dtype=np.float32)
    block[arrays[f"part{number}_places"]] = arrays[f"part{number}_values"]
    return block.reshape(shape)


def summarise_rows(
    store: CheckpointStore,
    runs: int,
    rows: np.ndarray,
    n: int,
    shape: tuple[int, int],
    weights: np.ndarray | None = None,
) -> RowSummaries:
    """Summarise the kept rows over the replicates ``0 .. runs - 1`` of a store.

    Parameters
    ----------
    store
        Holds the replicates.
    runs
        B, the number of replicates.
    rows
        (m,) the kept rows.
    n
        Rows of the table.
    shape
        (p, K).
    weights
        (n,) weights of the rows; they scale the moments of Lyapunov's condition, as they scale
        the sums of the runs.
    """
    positions = [_positions(store, index) for index in range(runs)]
    n_oob = np.zeros(len(rows), dtype=np.int64)
    for present in positions:
        n_oob[present] += 1
    m, n_columns = len(rows), shape[0] * shape[1]
    out = _Columns(m, n_columns)
    scale = np.ones(m) if weights is None else weights[rows].astype(np.float64)
    for part, values in _blocks(store, positions, n_oob, n_columns):
        out.fill(part, values, n_oob, runs, scale)
    return RowSummaries(
        rows=rows.astype(np.int64),
        n_oob=n_oob,
        mean=out.mean.reshape(m, *shape),
        sd=out.sd.reshape(m, *shape),
        p0=out.p0.reshape(m, *shape),
        quantiles=out.quantiles.reshape(m, *shape, len(LEVELS)),
        var_sum=out.var_sum.reshape(shape),
        abs3_sum=out.abs3_sum.reshape(shape),
        var_max=out.var_max.reshape(shape),
        n_rows_total=n,
        levels=LEVELS,
    )


def _positions(store: CheckpointStore, index: int) -> np.ndarray:
    with store.read(index) as arrays:
        return arrays["positions"]


def _blocks(
    store: CheckpointStore, positions: Sequence[np.ndarray], n_oob: np.ndarray, n_columns: int
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield blocks of columns with their attributions over the runs.

    Yields
    ------
    slice
        The columns.
    numpy.ndarray
        (m, c, r) float32: the runs in which a row was OOB come first, in their order; r is the
        largest number of them, and the rest is 0.
    """
    m, longest = len(n_oob), max(int(n_oob.max()), 1)
    width = max(BLOCK_BYTES // (4 * m * longest), 1)
    for number, part in enumerate(column_parts(m, n_columns)):
        size = part.stop - part.start
        for start in range(0, size, width):
            stop = min(start + width, size)
            values = np.zeros((m, stop - start, longest), dtype=np.float32)
            filled = np.zeros(m, dtype=np.int64)
            for index, present in enumerate(positions):
                with store.read(index) as arrays:
                    block = _unpack_part(arrays, number, (len(present), size))
                values[present, :, filled[present]] = block[:, start:stop]
                filled[present] += 1
            yield slice(part.start + start, part.start + stop), values


class _Columns:
    """Summaries of (m, n_columns) rows and columns, filled block by block."""

    def __init__(self, m: int, n_columns: int) -> None:
        self.mean, self.sd, self.p0 = (
            np.full((m, n_columns), np.nan, dtype=np.float32) for _ in range(3)
        )
        self.quantiles = np.full((m, n_columns, len(LEVELS)), np.nan, dtype=np.float32)
        self.var_sum, self.abs3_sum, self.var_max = (np.zeros(n_columns) for _ in range(3))

    def fill(
        self, columns: slice, values: np.ndarray, n_oob: np.ndarray, runs: int, scale: np.ndarray
    ) -> None:
        """Summarise one block, some rows at a time, with the sums in float64."""
        step = max(1, PIECE_VALUES // (values.shape[1] * values.shape[2]))
        for start in range(0, len(n_oob), step):
            rows = slice(start, start + step)
            block = values[rows].astype(np.float64)
            self._summarise((rows, columns), block, n_oob[rows])
            self._add_moments(columns, np.abs(block, out=block) * scale[rows, None, None], runs)

    def _summarise(self, where: tuple[slice, slice], x: np.ndarray, count: np.ndarray) -> None:
        """Fill in some rows from x (rows, c, r), of which ``count`` (rows,) runs are real."""
        absent = np.arange(x.shape[2]) >= count[:, None]
        n = count[:, None].astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = x.sum(axis=2) / n
            away = np.where(absent[:, None, :], 0.0, x - mean[:, :, None])
            variance = np.einsum("icr,icr->ic", away, away) / (n - 1)
            zeros = ((x == 0).sum(axis=2) - absent.sum(axis=1)[:, None]) / n
        self.mean[where] = mean
        self.sd[where] = np.sqrt(np.where(n > 1, variance, np.nan))
        self.p0[where] = zeros
        ordered = np.where(absent[:, None, :], np.float32(np.inf), x.astype(np.float32))
        ordered.sort(axis=2)
        last = np.maximum(count - 1, 0)
        for number, level in enumerate(LEVELS):
            place = level * last
            low = place.astype(np.int64)
            below, above = (
                np.take_along_axis(ordered, at[:, None, None], axis=2)[:, :, 0].astype(np.float64)
                for at in (low, np.minimum(low + 1, last))
            )
            with np.errstate(invalid="ignore"):
                between = below + (place - low)[:, None] * (above - below)
            self.quantiles[(*where, number)] = np.where(count[:, None] > 0, between, np.nan)

    def _add_moments(self, columns: slice, x: np.ndarray, runs: int) -> None:
        """Add moments of x (rows, c, r), which is 0 in the other ``runs - r`` runs."""
        others = runs - x.shape[2]
        mean = x.sum(axis=2) / runs
        away = np.abs(x - mean[:, :, None])
        squares = away * away
        variance = (squares.sum(axis=2) + others * mean**2) / runs
        third = (np.einsum("icr,icr->ic", squares, away) + others * mean**3) / runs
        self.var_sum[columns] += variance.sum(axis=0)
        self.abs3_sum[columns] += third.sum(axis=0)
        self.var_max[columns] = np.maximum(self.var_max[columns], variance.max(axis=0))
