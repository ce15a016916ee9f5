"""Sweeps: Hydra's launchers and the Optuna sweeper; nothing is lost in one fresh store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Checkout, copy_checkout, shell, succeed

pytestmark = pytest.mark.pipeline

ATTRIBUTE = (
    "roshap attribute -m dataset=wine model=logistic_regression compute.workers=1 "
    "bootstrap.row_level=false"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    copy_checkout(tmp_path)
    return tmp_path


def finished(root: Path, stage: str) -> list[Any]:
    import mlflow

    client = mlflow.MlflowClient(f"sqlite:///{root}/mlflow.db")
    experiment = client.get_experiment_by_name(stage)
    found = client.search_runs([experiment.experiment_id])
    assert {run.info.status for run in found} == {"FINISHED"}
    return list(found)


def test_eight_processes_into_a_fresh_store_lose_nothing(root: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    assert not (root / "mlflow.db").exists()
    seeds = ",".join(str(seed) for seed in range(8))
    succeed(
        f"{ATTRIBUTE} bootstrap.runs=3 seed={seeds} hydra/launcher=joblib hydra.launcher.n_jobs=8",
        root,
    )
    runs = finished(root, "attribute")
    assert sorted(run.data.params["seed"] for run in runs) == [str(seed) for seed in range(8)]
    for run in runs:
        assert set(run.data.metrics) == {"runs", "oob.mean", "redraws"}
        assert run.data.metrics["runs"] == 3
    results = list((root / "multirun").rglob("attributions.npz"))
    assert len(results) == 8


def test_submitit_on_this_machine(root: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher")
    succeed(f"{ATTRIBUTE} bootstrap.runs=3,4 hydra/launcher=submitit_local", root)
    runs = finished(root, "attribute")
    assert sorted(run.data.params["bootstrap.runs"] for run in runs) == ["3", "4"]


def test_optuna_minimises_a_logged_metric(root: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    succeed(
        "roshap attribute -m dataset=wine model=logistic_regression compute.workers=1 "
        "tracking=none "
        "'bootstrap.runs=range(2,6)' objective=runs hydra/sweeper=optuna "
        "hydra.sweeper.direction=minimize hydra.sweeper.n_trials=4 hydra.sweeper.n_jobs=1 "
        "hydra.sweeper.sampler.seed=0",
        root,
    )
    (path,) = (root / "multirun").rglob("optimization_results.yaml")
    found = yaml.safe_load(path.read_text())
    tried = [
        json.loads(one.read_text())["runs"] for one in (root / "multirun").rglob("experiment.json")
    ]
    assert len(tried) == 4
    assert found["best_value"] == min(tried) == found["best_params"]["bootstrap.runs"]


def test_an_objective_that_is_not_logged_names_those_that_are(checkout: Checkout) -> None:
    answer = checkout.roshap(
        "attribute", "dataset=wine", "model=logistic_regression", "bootstrap.runs=2",
        "tracking=none", "compute.workers=1", "objective=los",
    )  # fmt: skip
    assert answer.code == 2
    assert "objective 'los' is no metric of attribute" in answer.complaint
    assert "oob.mean, redraws, runs" in answer.complaint


def test_a_job_that_fails_is_named_and_the_others_are_kept(root: Path) -> None:
    words = ATTRIBUTE.replace("model=logistic_regression", "model=logistic_regression,ridge")
    done = shell(f"{words} bootstrap.runs=3", root)
    assert done.returncode == 2
    assert "model 'ridge' has no settings for classification" in done.stderr
    assert len(list((root / "multirun").rglob("attributions.npz"))) == 1
