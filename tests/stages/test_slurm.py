"""``compute=slurm``: jobs go through the submitit launcher, here with its local executor."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hydra.errors import MissingConfigException

from roshap.stages.app import explain
from roshap.stages.workspace import Workspace
from tests.conftest import REPOSITORY, Checkout, copy_checkout

needs_submitit = pytest.mark.skipif(
    importlib.util.find_spec("submitit") is None,
    reason="needs hydra-submitit-launcher: pip install 'roshap[slurm]'",
)
ARGUMENTS = ("dataset=wine", "model=logistic_regression", "bootstrap.runs=3", "tracking=none")


def attribute(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "roshap", "attribute", *ARGUMENTS, *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@needs_submitit
@pytest.mark.pipeline
def test_a_job_has_the_bytes_of_a_run_here_and_its_error_is_one_line(tmp_path: Path) -> None:
    copy_checkout(tmp_path)
    job = ("compute=slurm", "hydra/launcher=submitit_local", "hydra.launcher.cpus_per_task=1")
    done = attribute(tmp_path, *job, "out=r")
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob(".roshap/slurm/*/*_submitted.pkl"))
    from_job = contents(tmp_path / "r" / "attribute")
    for folder in ("r", ".roshap/checkpoints"):
        shutil.rmtree(tmp_path / folder)
    assert attribute(tmp_path, "compute.workers=1", "out=r").returncode == 0
    assert contents(tmp_path / "r" / "attribute") == from_job

    failed = attribute(tmp_path, *job, "out=r", "model=ridge")
    assert failed.returncode == 2
    assert failed.stderr.strip().splitlines()[-1].startswith("roshap: model 'ridge'")


@needs_submitit
@pytest.mark.skipif(shutil.which("srun") is not None, reason="this machine has Slurm")
def test_no_slurm_here(checkout: Checkout) -> None:
    answer = checkout.roshap("attribute", "compute=slurm", *ARGUMENTS)
    assert answer.code == 2
    assert "no command srun" in answer.complaint
    assert "Traceback" not in answer.err


def test_missing_launcher_says_what_to_install() -> None:
    error = MissingConfigException(
        "In 'compute/slurm': Could not load 'hydra/launcher/submitit_slurm'.", "", None
    )
    said = explain(error, [], Workspace(REPOSITORY))
    assert "pip install 'roshap[slurm]'" in said
