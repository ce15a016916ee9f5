from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from roshap.tracking import TrackSettings, default_uri, ensure_store, track


@pytest.fixture(autouse=True)
def _no_mlflow_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID", "DVC_EXP_NAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def template_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with an empty store: making one takes seconds, copying one takes none."""
    root = tmp_path_factory.mktemp("template")
    ensure_store(default_uri(root), root)
    return root


@pytest.fixture
def root(template_root: Path, tmp_path: Path) -> Path:
    root = tmp_path / "check out"
    root.mkdir()
    shutil.copy(template_root / "mlflow.db", root)
    return root


@pytest.fixture
def client(root: Path) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=default_uri(root))


Tracker = Callable[..., contextlib.AbstractContextManager[Any]]


@pytest.fixture
def tracker(root: Path) -> Tracker:
    """``track`` with everything filled in that a test does not care about."""
    return partial(
        track,
        TrackSettings(),
        stage="attribute",
        experiment="wine-xgboost",
        study="quick",
        params={},
        command="roshap attribute dataset=wine",
        root=root,
    )


@pytest.fixture
def git_repository(root: Path) -> str:
    """Make ``root`` a repository with one commit on ``main``; returns the commit."""
    (root / "conf.yaml").write_text("a: 1\n")
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    for command in (
        ["init", "-q", "-b", "main"],
        ["add", "conf.yaml"],
        [*identity, "commit", "-q", "--no-gpg-sign", "-m", "first"],
    ):
        subprocess.run(["git", *command], cwd=root, check=True)
    head = ["git", "rev-parse", "HEAD"]
    return subprocess.run(head, cwd=root, check=True, capture_output=True, text=True).stdout.strip()
