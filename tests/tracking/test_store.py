from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from roshap.errors import TrackingError
from roshap.tracking import TrackSettings, default_uri, ensure_store, store, tracking_uri
from roshap.tracking.store import open_store, without_password

START_TOGETHER = Path(__file__).with_name("start_together.py")


def test_processes_that_start_together_on_a_fresh_store_all_log(tmp_path: Path) -> None:
    from mlflow import MlflowClient

    command = [sys.executable, START_TOGETHER, tmp_path, "8"]
    answer = subprocess.run(command, check=False, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""  # no message about migrations or locks
    client = MlflowClient(tracking_uri=default_uri(tmp_path))
    experiment = client.get_experiment_by_name("attribute")
    runs = client.search_runs([experiment.experiment_id])
    assert {run.info.run_name for run in runs} == {f"experiment-{i}" for i in range(8)}
    assert {run.info.status for run in runs} == {"FINISHED"}
    for run in runs:
        history = client.get_metric_history(run.info.run_id, "loss")
        assert sorted(point.step for point in history) == list(range(1500))


def test_existing_store_is_left_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ensure_store(default_uri(root), root)
    before = (root / "mlflow.db").stat()

    def fail(*_: object) -> None:
        raise AssertionError("an existing store was created again")

    monkeypatch.setattr(store, "_create", fail)
    ensure_store(default_uri(root), root)
    after = (root / "mlflow.db").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_creation_that_breaks_leaves_no_half_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.store.db import utils

    def break_off(engine: object) -> None:
        raise RuntimeError("power cut")

    monkeypatch.setattr(utils, "_upgrade_db", break_off)
    with pytest.raises(TrackingError, match="power cut"):
        ensure_store(default_uri(tmp_path), tmp_path)
    assert list(tmp_path.glob("*mlflow*")) == []


def test_artifacts_lie_below_the_root_wherever_the_command_runs(
    template_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    opened = open_store(default_uri(template_root), template_root)
    default = opened.client.get_experiment("0").artifact_location
    mine = opened.client.get_experiment(opened.experiment_id("rank")).artifact_location
    assert default == (template_root / "mlruns" / "0").as_uri()
    assert mine == (template_root / "mlruns" / "rank").as_uri()


def test_copied_checkout_logs_to_its_own_folder(root: Path, tmp_path: Path) -> None:
    first = open_store(default_uri(root), root)
    run = first.client.create_run(first.experiment_id("rank"))
    first.client.log_text(run.info.run_id, "found again", "a.txt")

    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    second = open_store(default_uri(copy), copy)
    moved = second.client.get_run(run.info.run_id)
    artifacts = copy / "mlruns" / "rank" / run.info.run_id / "artifacts"
    assert moved.info.artifact_uri == artifacts.as_uri()
    experiment = second.client.get_experiment(second.experiment_id("rank"))
    assert experiment.artifact_location == (copy / "mlruns" / "rank").as_uri()
    assert first.client.get_run(run.info.run_id).info.artifact_uri == run.info.artifact_uri


def test_experiment_deleted_in_the_ui_is_used_again(root: Path) -> None:
    opened = open_store(default_uri(root), root)
    number = opened.experiment_id("rank")
    opened.client.delete_experiment(number)
    assert opened.experiment_id("rank") == number
    assert opened.client.create_run(number).info.status == "RUNNING"


def test_environment_wins_over_settings_over_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tracking_uri(TrackSettings(), tmp_path) == f"sqlite:///{tmp_path}/mlflow.db"
    settings = TrackSettings(uri="http://127.0.0.1:5000")
    assert tracking_uri(settings, tmp_path) == "http://127.0.0.1:5000"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///other.db")
    assert tracking_uri(settings, tmp_path) == f"sqlite:///{tmp_path}/other.db"


def test_server_that_refuses_is_one_quick_line(root: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        uri = f"http://127.0.0.1:{unused.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(TrackingError) as caught:
            open_store(uri, root)
    assert time.monotonic() - start < 30  # MLflow's defaults take four minutes
    message = str(caught.value)
    assert message.startswith(f"cannot reach the MLflow server {uri}: Connection refused (")
    assert "tracking=none" in message
    assert "\n" not in message


def test_server_that_does_not_answer_is_one_line(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TrackingError, match=f"cannot reach the MLflow server {uri}: no answer"):
            open_store(uri, root)


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("bogus://somewhere", "unsupported URI 'bogus://somewhere'"),
        ("sqlite:////proc/no/such/mlflow.db", "cannot create the MLflow store /proc/no/such"),
    ],
)
def test_store_that_cannot_be_used_is_one_line(root: Path, uri: str, reason: str) -> None:
    with pytest.raises(TrackingError, match=reason) as caught:
        open_store(uri, root)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["mlflow.db", "other.db"])
def test_file_that_is_no_database_is_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("not a database at all")
    with pytest.raises(TrackingError, match=rf"{name}: file is not a database \(move the file"):
        open_store(f"sqlite:///{tmp_path / name}", tmp_path)


def test_telemetry_is_off() -> None:
    code = (
        "from roshap.tracking.store import import_mlflow; import_mlflow();"
        "from mlflow.telemetry import get_telemetry_client; print(get_telemetry_client())"
    )
    # a CI system and pytest switch it off as well, and this process has imported MLflow before
    others = ("CI", "GITHUB_ACTIONS", "PYTEST_CURRENT_TEST", "DO_NOT_TRACK")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in others and not name.startswith("MLFLOW_")
    }
    answer = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    )
    assert answer.stdout.strip() == "None"


def test_password_is_not_shown() -> None:
    assert without_password("https://me:secret@host:5000/x") == "https://***@host:5000/x"
    assert without_password("sqlite:////a/b@c/mlflow.db") == "sqlite:////a/b@c/mlflow.db"
