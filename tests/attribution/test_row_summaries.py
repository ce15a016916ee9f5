import math
import tracemalloc

import numpy as np
import pytest

from roshap.attribution import row_summaries
from roshap.attribution.row_summaries import column_parts, kept_rows, pack_rows, summarise_rows
from roshap.compute import CheckpointStore

RUNS, M, P, K = 30, 40, 7, 2


@pytest.fixture(params=["dense", "sparse"])
def study(request, tmp_path):
    """A store of made-up runs, and the same attributions as (B, m, p, K) with NaN in the bag."""
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(RUNS, M, P, K)).astype(np.float32)
    phi[rng.random(phi.shape) < (0.1 if request.param == "dense" else 0.8)] = 0
    out = rng.random((RUNS, M)) < 0.4
    out[:, 5], out[:, 6] = False, False  # one row never out of bag, one once
    out[3, 6] = True
    phi[~out] = np.nan
    store = CheckpointStore(tmp_path, {}, "x")
    with store.open():
        for run in range(RUNS):
            positions = np.flatnonzero(out[run])
            store.write(run, pack_rows(positions, phi[run, positions], M))
    return store, phi.astype(np.float64)


@pytest.fixture(params=[1, 3, 10**9], ids=["one column", "some", "all"])
def small_blocks(request, monkeypatch):
    """Parts and blocks of different sizes."""
    monkeypatch.setattr(row_summaries, "PART_VALUES", 40)
    monkeypatch.setattr(row_summaries, "BLOCK_BYTES", request.param * 4 * M * RUNS)


@pytest.mark.filterwarnings("ignore:(Mean of empty|Degrees of freedom|All-NaN)")
@pytest.mark.usefixtures("small_blocks")
def test_summaries_are_those_of_the_whole_array(study):
    store, phi = study
    rows = np.arange(0, 2 * M, 2)
    weights = np.linspace(0.5, 2, 2 * M)
    found = summarise_rows(store, RUNS, rows, 2 * M, (P, K), weights)
    np.testing.assert_array_equal(found.n_oob, (~np.isnan(phi[:, :, 0, 0])).sum(axis=0))
    np.testing.assert_allclose(found.mean, np.nanmean(phi, axis=0), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found.sd, np.nanstd(phi, axis=0, ddof=1), rtol=1e-5)
    n = found.n_oob[:, None, None]
    zeros = np.where(n > 0, (phi == 0).sum(axis=0) / np.maximum(n, 1), np.nan)
    np.testing.assert_allclose(found.p0, zeros, rtol=1e-6)
    quantiles = np.moveaxis(np.nanquantile(phi, found.levels, axis=0), 0, -1)
    np.testing.assert_allclose(found.quantiles, quantiles, rtol=1e-4, atol=1e-6)
    x = np.nan_to_num(np.abs(phi)) * weights[rows][:, None, None]
    away = np.abs(x - x.mean(axis=0))
    np.testing.assert_allclose(found.var_sum, (away**2).mean(axis=0).sum(axis=0))
    np.testing.assert_allclose(found.abs3_sum, (away**3).mean(axis=0).sum(axis=0))
    np.testing.assert_allclose(found.var_max, (away**2).mean(axis=0).max(axis=0))
    assert (found.rows == rows).all()
    assert found.n_rows_total == 2 * M
    assert not found.complete


def test_rows_with_too_few_runs_are_nan(study):
    found = summarise_rows(study[0], RUNS, np.arange(M), M, (P, K))
    assert found.n_oob[5] == 0
    for name in ("mean", "sd", "p0", "quantiles"):
        assert np.isnan(getattr(found, name)[5]).all()
    assert found.n_oob[6] == 1
    assert np.isnan(found.sd[6]).all()
    np.testing.assert_array_equal(found.quantiles[6, ..., 0], found.mean[6])
    assert found.complete


def test_sparse_runs_take_less_room(tmp_path):
    positions, phi = np.arange(M), np.ones((M, P, K), dtype=np.float32)
    dense = pack_rows(positions, phi, M)
    phi[:, 1:] = 0
    sparse = pack_rows(positions, phi, M)
    dense_size, sparse_size = (
        sum(array.nbytes for array in arrays.values()) for arrays in (dense, sparse)
    )
    assert sparse_size < 0.5 * dense_size


def test_all_rows_are_kept_where_they_fit():
    np.testing.assert_array_equal(kept_rows(72, 7129, 1, 1_000_000), np.arange(72))


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_too_many_rows_are_thinned_evenly(n_outputs):
    rows = kept_rows(20_000, 520, n_outputs, 1_000_000)
    assert 0.9e6 < math.exp(-1) * len(rows) * 520 * n_outputs <= 1e6
    steps = np.diff(rows)
    assert steps.max() - steps.min() <= 1
    assert rows[0] == 0
    assert rows[-1] == 19_999


def test_one_row_at_least():
    assert kept_rows(10, 10_000_000, 1, 1000).tolist() == [0]


@pytest.mark.parametrize("n_columns", [1, 2, 520, 7129])
@pytest.mark.parametrize("n_kept", [0, 1, 6600])
def test_parts_cover_every_column_once(n_kept, n_columns):
    parts = column_parts(n_kept, n_columns)
    assert [c for part in parts for c in range(part.start, part.stop)] == list(range(n_columns))


def test_memory_does_not_grow_with_the_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(row_summaries, "BLOCK_BYTES", 2**20)
    monkeypatch.setattr(row_summaries, "PIECE_VALUES", 2**12)
    rows, phi = np.arange(200), np.ones((70, 100, 1), dtype=np.float32)
    store = CheckpointStore(tmp_path, {}, "x")
    with store.open():
        for run in range(150):
            positions = np.random.default_rng(run).choice(200, size=70, replace=False)
            store.write(run, pack_rows(np.sort(positions), phi, 200))
    peaks = []
    for runs in (40, 150):
        tracemalloc.start()
        summarise_rows(store, runs, rows, 200, (100, 1))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # all runs at once would take 200 x 100 x 40 more floats, 3 MB
    assert peaks[1] < peaks[0] + 2**19
