"""``roshap run`` and the stages by hand: files, MLflow, sweeps, resuming."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from roshap.attribution.ranking import read_ranking
from roshap.plots import read_provenance
from tests.conftest import REPOSITORY, Checkout, copy_checkout

SMALL = ("tracking=none", "compute.workers=1")


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def own_csv(path: Path, target: list[str] | np.ndarray) -> Path:
    rng = np.random.default_rng(3)
    signal_column = pd.factorize(pd.Series(target))[0] if isinstance(target, list) else target
    frame = pd.DataFrame(rng.normal(size=(len(target), 4)), columns=["noise", "b", "c", "d"])
    frame["signal"] = signal_column + rng.normal(scale=0.1, size=len(target))
    frame["y"] = target
    frame.to_csv(path, index=False)
    return path


@pytest.mark.pipeline
def test_own_csv_with_a_text_target_of_three_classes(checkout: Checkout) -> None:
    own_csv(checkout.root / "my.csv", ["red", "green", "blue"] * 30)
    answer = checkout.roshap(
        "run", "dataset=csv", "dataset.path=my.csv", "dataset.target=y", "model=lightgbm",
        "bootstrap.runs=5", "out=mine", *SMALL,
    )  # fmt: skip
    assert answer.code == 0, answer.err
    assert "multiclass" in answer.err
    table = read_ranking(checkout.root / "mine" / "rank")
    assert table["feature"].iloc[0] == "signal"
    assert "signal" in answer.out
    assert "mine/index.html" in answer.out
    page = (checkout.root / "mine" / "index.html").read_text()
    assert "my-lightgbm" in page
    assert str(checkout.root) not in page
    classes = pd.read_csv(checkout.root / "mine" / "rank" / "classes.csv")
    assert set(classes["class"]) == {"red", "green", "blue"}


@pytest.mark.pipeline
def test_own_csv_with_a_numeric_target(checkout: Checkout) -> None:
    target = np.random.default_rng(0).normal(size=60)
    own_csv(checkout.root / "my.csv", target)
    answer = checkout.roshap(
        "run", "dataset=csv", "dataset.path=my.csv", "dataset.target=y", "model=ridge",
        "bootstrap.runs=5", "out=mine", *SMALL,
    )  # fmt: skip
    assert answer.code == 0, answer.err
    assert "regression" in answer.err
    assert read_ranking(checkout.root / "mine" / "rank")["feature"].iloc[0] == "signal"


@pytest.mark.pipeline
def test_stages_one_after_the_other_and_their_provenance(checkout: Checkout) -> None:
    common = ("dataset=breast_cancer", "model=logistic_regression", "out=r", *SMALL)
    assert checkout.roshap("attribute", "bootstrap.runs=4", *common).code == 0
    answer = checkout.roshap("rank", *common)
    assert answer.code == 0, answer.err
    figures = sorted((checkout.root / "r" / "rank" / "figures").iterdir())
    assert {path.suffix for path in figures} == {".svg", ".png"}
    table = json.loads((checkout.root / "data" / "breast_cancer" / "table.json").read_text())
    for path in figures:
        inside = read_provenance(path)
        assert json.loads(inside["data"]) == {"breast_cancer": table["digest"]}
        assert json.loads(inside["parameters"])["attribute"]["bootstrap"]["runs"] == 4
        assert str(checkout.root) not in path.read_bytes().decode("latin-1")


@pytest.mark.pipeline
def test_overridden_options_do_not_touch_the_shared_table(checkout: Checkout) -> None:
    options = ("dataset=simulation", "dataset.reader_options.p=30", "bootstrap.runs=2")
    answer = checkout.roshap("attribute", *options, "out=r", *SMALL)
    assert answer.code == 0, answer.err
    assert not (checkout.root / "data" / "simulation").exists()
    about = json.loads((checkout.root / "r" / "attribute" / "experiment.json").read_text())
    assert about["data"]["p"] == 30


@pytest.mark.pipeline
def test_a_sweep_logs_comparable_runs(checkout: Checkout) -> None:
    import mlflow

    answer = checkout.roshap(
        "attribute", "-m", "dataset=wine", "model=xgboost,lightgbm", "bootstrap.runs=2,3",
        "compute.workers=1",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    client = mlflow.MlflowClient(f"sqlite:///{checkout.root}/mlflow.db")
    experiment = client.get_experiment_by_name("attribute")
    runs = client.search_runs([experiment.experiment_id])
    found = {(run.data.params["model.name"], run.data.params["bootstrap.runs"]) for run in runs}
    assert found == {(m, b) for m in ("xgboost", "lightgbm") for b in ("2", "3")}
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert len({run.data.tags["out"] for run in runs}) == 4
    assert all(run.inputs.dataset_inputs[0].dataset.name == "wine" for run in runs)


@pytest.mark.pipeline
def test_killed_resumed_and_with_other_workers_it_is_the_same(tmp_path: Path) -> None:
    """kill -9 midway, then the same command: it goes on, and the bytes are those of one go."""

    def command(root: Path, workers: int) -> list[str]:
        return [
            sys.executable, "-m", "roshap", "attribute", "dataset=breast_cancer",
            "model=lightgbm", "bootstrap.runs=60", f"compute.workers={workers}",
            "compute.log_every=0.1", "tracking=none", "out=r",
        ]  # fmt: skip

    results = []
    for workers in (1, 2):
        root = tmp_path / f"whole{workers}"
        copy_checkout(root)
        subprocess.run(command(root, workers), cwd=root, check=True, capture_output=True)
        results.append(files_of(root / "r"))
    root = tmp_path / "killed"
    copy_checkout(root)
    process = subprocess.Popen(
        command(root, 2), cwd=root, stderr=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while len(list(root.glob(".roshap/checkpoints/*/*.npz"))) < 20:
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = len(list(root.glob(".roshap/checkpoints/*/*.npz")))
    assert not (root / "r" / "attribute").exists()
    done = subprocess.run(command(root, 2), cwd=root, check=True, capture_output=True, text=True)
    assert 20 <= kept < 60
    assert f"resuming: {kept} of 60 runs found" in done.stderr
    results.append(files_of(root / "r"))
    assert results[0] == results[1] == results[2]


@pytest.mark.pipeline
def test_extended_and_changed_runs(checkout: Checkout) -> None:
    base = ("attribute", "dataset=wine", "model=logistic_regression", "out=r", *SMALL)
    assert checkout.roshap(*base, "bootstrap.runs=6").code == 0
    more = checkout.roshap(*base, "bootstrap.runs=9")
    assert "resuming: 6 of 9 runs found" in more.err
    changed = checkout.roshap(*base, "bootstrap.runs=9", "seed=5")
    assert "seed changed" in changed.err
    assert "starting afresh" in changed.err
    assert "resuming" not in changed.err


def test_the_repository_is_a_checkout() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "roshap", "attribute", "--cfg", "job"],
        cwd=REPOSITORY / "src", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "bootstrap:" in done.stdout
