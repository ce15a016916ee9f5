"""``mlflow run`` of every entry point of the MLproject, on small data."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.conftest import REPOSITORY, copy_checkout, succeed

PROJECT = yaml.safe_load((REPOSITORY / "MLproject").read_text())["entry_points"]

#: Small parameters for each entry point, and the MLflow runs (stage, name) that must be there.
SMALL: dict[str, tuple[dict[str, str], set[tuple[str, str]]]] = {
    "main": (
        {"dataset": "wine", "model": "logistic_regression", "runs": "2"},
        {("attribute", "wine-logistic_regression"), ("rank", "wine-logistic_regression")},
    ),
    "attribute": (
        {"dataset": "diabetes", "model": "ridge", "runs": "2", "seed": "1"},
        {("attribute", "diabetes-ridge")},
    ),
    "select": (
        {"dataset": "diabetes", "model": "ridge", "runs": "3", "upto": "2", "folds": "2"},
        {("select", "diabetes-ridge")},
    ),
    "regress": ({"regression": "spectral_shaw"}, {("regress", "spectral_shaw")}),
    "sweep": (
        {"datasets": "diabetes", "models": "ridge,lightgbm", "runs": "2"},
        {("rank", "diabetes-ridge"), ("rank", "diabetes-lightgbm")},
    ),
}


def test_every_entry_point_is_tested_and_typed() -> None:
    assert set(PROJECT) == set(SMALL)
    for entry in PROJECT.values():
        for parameter in entry["parameters"].values():
            assert parameter["type"] in {"string", "float", "path", "uri"}
            assert "default" in parameter


@pytest.mark.pipeline
@pytest.mark.parametrize("entry", sorted(PROJECT))
def test_mlflow_run(entry: str, tmp_path: Path) -> None:
    import mlflow

    copy_checkout(tmp_path)
    for name in ("MLproject", "python_env.yaml"):
        (tmp_path / name).write_bytes((REPOSITORY / name).read_bytes())
    store = f"sqlite:///{tmp_path}/mlflow.db"
    given, expected = SMALL[entry]
    words = " ".join(f"-P {key}={value}" for key, value in given.items())
    succeed(
        f"mlflow run . -e {entry} --env-manager=local {words}", tmp_path, MLFLOW_TRACKING_URI=store
    )
    client = mlflow.MlflowClient(store)
    found = {
        (experiment.name, run.info.run_name)
        for experiment in client.search_experiments()
        for run in client.search_runs([experiment.experiment_id])
        if run.info.status == "FINISHED"
    }
    # the project's own run is beside them, in MLflow's default experiment: none is written into it
    assert expected <= found
