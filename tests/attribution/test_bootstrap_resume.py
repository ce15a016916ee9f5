"""Interrupted, extended and changed studies."""

import io
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from roshap.attribution.bootstrap import BootstrapSettings, bootstrap_attributions
from roshap.compute import Executor, Progress
from roshap.datasets import from_frame
from roshap.errors import OutputError

STUDY = Path(__file__).with_name("bootstrap_study.py")


def study(store, output, runs=100, workers=1, after=0):
    """Run the study in a process of its own; return its exit status and what it said."""
    command = [sys.executable, STUDY, store, output, runs, workers, after]
    # run() returns when nobody holds the streams: a killed process must not leave its workers
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=120, check=False
    )
    return result.returncode, result.stderr


def written(store):
    """Return when each replicate was written."""
    return {path.name: path.stat().st_mtime_ns for path in store.glob("*/*.npz")}


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    assert study(folder / "store", folder / "out")[0] == 0
    return contents(folder / "out")


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_study_goes_on_where_it_was(tmp_path, unbroken, workers):
    status, said = study(tmp_path / "store", tmp_path / "out", workers=workers, after=37)
    assert status == -signal.SIGKILL
    assert "37/100 runs" in said
    before = written(tmp_path / "store")
    assert len(before) == 37
    assert not (tmp_path / "out").exists()

    status, said = study(tmp_path / "store", tmp_path / "out", workers=workers)
    assert status == 0, said
    assert "study: resuming: 37 of 100 runs found" in said
    after = written(tmp_path / "store")
    assert {name: after[name] for name in before} == before
    assert len(after) == 100
    assert contents(tmp_path / "out") == unbroken
    assert not list((tmp_path / "store" / "tmp").glob("*/"))


class Study:
    """A small study in this process that counts what it computes."""

    def __init__(self, store):
        self.store = store
        self.said = ""

    def __call__(self, runs=6, *, seed=0, scale=1.0, alpha=1.0, **settings):
        X = scale * np.random.default_rng(0).normal(size=(40, 4))
        stream = io.StringIO()
        before = written(self.store)
        result = bootstrap_attributions(
            from_frame(X, X[:, 0], task="regression", name="small"),
            Ridge(alpha=alpha),
            runs=runs,
            seed=seed,
            settings=BootstrapSettings(explainer="native", **settings),
            executor=Executor(workers=1),
            store=self.store,
            progress=Progress("small", every=1e9, stream=stream),
        )
        self.said = stream.getvalue()
        after = written(self.store)
        self.computed = len([name for name in after if after[name] != before.get(name)])
        return result


@pytest.fixture
def small(tmp_path):
    return Study(tmp_path / "store")


def test_more_runs_repeat_none(small, tmp_path):
    small(100)
    before = written(small.store)
    extended = small(150)
    assert small.computed == 50
    assert "resuming: 100 of 150 runs found" in small.said
    assert {name: written(small.store)[name] for name in before} == before
    extended.save(tmp_path / "extended")
    Study(tmp_path / "fresh")(150).save(tmp_path / "whole")
    assert contents(tmp_path / "extended") == contents(tmp_path / "whole")


def test_fewer_runs_are_those_of_a_short_study(small, tmp_path):
    small(9).save(tmp_path / "long")
    small(4).save(tmp_path / "cut")
    assert small.computed == 0
    Study(tmp_path / "fresh")(4).save(tmp_path / "short")
    assert contents(tmp_path / "cut") == contents(tmp_path / "short")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"seed": 1}, "seed"),
        ({"scale": 2.0}, "data"),
        ({"min_per_class": 3}, "settings.min_per_class"),
        ({"alpha": 2.0}, "model.alpha"),
    ],
)
def test_change_starts_afresh_and_says_so(small, change, what):
    small()
    changed = small(**change)
    assert f"{what} changed since the last run of this label: starting afresh" in small.said
    assert len(list(small.store.glob("*/*.npz"))) == 12
    np.testing.assert_array_equal(changed.S, Study(small.store.parent / "fresh")(**change).S)


def test_other_aggregate_needs_no_new_runs(small):
    total = small()
    mean = small(aggregate="mean")
    assert small.computed == 0
    np.testing.assert_allclose(mean.S * total.n_oob[:, None, None], total.S)


def test_damaged_replicate_is_computed_again(small):
    before = small()
    path = next(small.store.glob("*/000002.npz"))
    path.write_bytes(path.read_bytes()[:-40])
    again = small()
    assert small.computed == 1
    assert "replicate 2 on disk is damaged: it is computed again" in small.said
    np.testing.assert_array_equal(again.S, before.S)


def test_store_that_cannot_be_written(tmp_path):
    (tmp_path / "store").write_text("")
    with pytest.raises(OutputError, match="cannot write checkpoints in"):
        Study(tmp_path / "store")()
