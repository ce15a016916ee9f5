"""What tests of several parts share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from roshap.cli import main

REPOSITORY = Path(__file__).resolve().parents[1]


def pytest_configure() -> None:
    """Keep tests off the network, and one thread in each process."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    for name in ("DO_NOT_TRACK", "DVC_NO_ANALYTICS", "HF_HUB_OFFLINE"):
        os.environ.setdefault(name, "1")


@dataclass(frozen=True)
class Answer:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line of a user's mistake; other lines may stand before it."""
        last = self.err.strip().splitlines()[-1]
        assert last.startswith("roshap: "), self.err
        return last


@dataclass(frozen=True)
class Checkout:
    """A checkout of its own: configs and pipeline copied, nothing computed yet."""

    root: Path
    roshap: Callable[..., Answer]


@pytest.fixture
def checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Checkout:
    """Return an empty checkout with ``roshap(*arguments)`` running in it, untracked by default."""
    copy_checkout(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROSHAP_MIRROR", raising=False)

    def roshap(*arguments: str) -> Answer:
        capfd.readouterr()
        code = main(list(arguments))
        said = capfd.readouterr()
        return Answer(code, said.out, said.err)

    return Checkout(tmp_path, roshap)


def copy_checkout(target: Path) -> None:
    """Copy what a command needs of the repository."""
    shutil.copytree(REPOSITORY / "conf", target / "conf")
    for name in ("dvc.yaml", "params.yaml"):
        shutil.copy(REPOSITORY / name, target / name)


def shell(command: str, root: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a person would, with this test's environment first on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    clean = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW_")}
    return subprocess.run(
        command,
        shell=True,
        cwd=root,
        env={**clean, "PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def succeed(command: str, root: Path, **environment: str) -> str:
    """Run a command that must end well; return what it printed."""
    done = shell(command, root, **environment)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


TINY_STUDY = (
    "roshap study quick runs=4 'only=[wine-lr]' "
    "'+experiments.wine-lr={dataset: wine, model: logistic_regression}'"
)
COMMIT = "git add -A && git -c user.name=t -c user.email=t@t commit -q --no-gpg-sign -m"


def make_repository(root: Path, study: str = TINY_STUDY) -> Path:
    """Make a checkout under git and DVC with a study chosen and nothing computed."""
    copy_checkout(root)
    for name in ("MLproject", "python_env.yaml", ".dvcignore", ".gitignore"):
        shutil.copy(REPOSITORY / name, root / name)
    (root / "src").symlink_to(REPOSITORY / "src")
    for command in ("git init -q -b main", "dvc init -q", study, f"{COMMIT} start"):
        succeed(command, root)
    # queued experiments commit on their own
    succeed("git config user.name t && git config user.email t@t", root)
    return root
