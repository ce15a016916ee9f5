"""The pipeline as DVC runs it: what an edit touches, cleanliness, MLproject."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import REPOSITORY, copy_checkout

STUDY = "roshap study quick runs=3 'only=[wine-xgboost,diabetes-ridge,diabetes-lightgbm]'"


def shell(command: str, root: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command,
        shell=True,
        cwd=root,
        env={**os.environ, "PATH": path, "DVC_NO_ANALYTICS": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def succeed(command: str, root: Path, **environment: str) -> str:
    done = shell(command, root, **environment)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout under git and DVC in which a small study has run once."""
    root = tmp_path_factory.mktemp("pipeline")
    copy_checkout(root)
    for name in ("MLproject", "python_env.yaml", ".dvcignore", ".gitignore"):
        (root / name).write_bytes((REPOSITORY / name).read_bytes())
    (root / "src").symlink_to(REPOSITORY / "src")
    for command in ("git init -q", "dvc init -q", STUDY, "dvc repro"):
        succeed(command, root)
    succeed("git add -A && git -c user.name=t -c user.email=t@t commit -qm all", root)
    return root


@pytest.mark.pipeline
def test_afterwards_everything_is_clean_and_nothing_runs_again(pipeline: Path) -> None:
    assert "up to date" in succeed("dvc status", pipeline)
    again = succeed("dvc repro", pipeline)
    assert "Running stage" not in again
    assert succeed("git status --porcelain", pipeline) == ""


@pytest.mark.pipeline
def test_the_page_has_every_experiment(pipeline: Path) -> None:
    page = (pipeline / "reports" / "quick" / "index.html").read_text()
    for name in ("wine-xgboost", "diabetes-ridge", "diabetes-lightgbm"):
        assert f'id="{name}"' in page
    assert 'src="http' not in page
    assert str(pipeline) not in page


@pytest.mark.pipeline
def test_an_edit_of_a_model_touches_its_experiments_only(pipeline: Path) -> None:
    path = pipeline / "conf" / "model" / "lightgbm.yaml"
    before = path.read_text()
    try:
        path.write_text(before.replace("max_depth: ", "max_depth: 1"))
        changed = {
            line.rstrip(":") for line in succeed("dvc status", pipeline).splitlines()
            if line and not line.startswith("\t")
        }  # fmt: skip
    finally:
        path.write_text(before)
    assert changed == {"attribute@diabetes-lightgbm", "select@diabetes-lightgbm"}


@pytest.mark.pipeline
def test_a_removed_experiment_leaves_the_report(pipeline: Path) -> None:
    params = pipeline / "params.yaml"
    before = params.read_text()
    try:
        succeed("roshap study quick runs=3 'only=[wine-xgboost,diabetes-ridge]'", pipeline)
        succeed("dvc repro report", pipeline)
        page = (pipeline / "reports" / "quick" / "index.html").read_text()
        assert "diabetes-lightgbm" not in page
        assert (pipeline / "results" / "diabetes-lightgbm").is_dir()
    finally:
        params.write_text(before)
        succeed("git checkout -q -- . && dvc checkout -q", pipeline)


@pytest.mark.pipeline
def test_mlflow_run(pipeline: Path) -> None:
    import mlflow

    succeed(
        "mlflow run . -e main --env-manager=local "
        "-P dataset=wine -P model=logistic_regression -P runs=3",
        pipeline,
        MLFLOW_TRACKING_URI=f"sqlite:///{pipeline}/mlflow.db",
    )
    client = mlflow.MlflowClient(f"sqlite:///{pipeline}/mlflow.db")
    experiment = client.get_experiment_by_name("rank")
    names = {run.info.run_name for run in client.search_runs([experiment.experiment_id])}
    assert "wine-logistic_regression" in names


def test_every_experiment_of_the_lock_is_in_the_study() -> None:
    """The committed ``dvc.lock`` belongs to the committed ``params.yaml``."""
    lock = yaml.safe_load((REPOSITORY / "dvc.lock").read_text())["stages"]
    study = yaml.safe_load((REPOSITORY / "params.yaml").read_text())["experiments"]
    for name, knobs in study.items():
        command = lock[f"attribute@{name}"]["cmd"]
        assert f"bootstrap.runs={knobs['runs']} " in command
        assert f"seed={knobs['seed']} " in command
