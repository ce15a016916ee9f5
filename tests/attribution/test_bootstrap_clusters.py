"""The same bytes from every back end, whatever dies on the way."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from roshap.compute.backends import CLUSTERS

pytestmark = pytest.mark.xdist_group("clusters")

STUDY = Path(__file__).with_name("cluster_study.py")


def study(folder, backend, workers, *, after=0, flag="-"):
    """Run the study in a process of its own; return its exit status and what it said."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, STUDY, backend, workers, folder / "store", folder / "out", after]
    done = subprocess.run(
        [*map(str, command), str(flag)],
        env={**os.environ, "HOME": str(folder), "DASK_CONFIG": str(folder / "dask")},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    return done.returncode, done.stderr


def contents(folder):
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    status, said = study(folder, "loky", 1)
    assert status == 0, said
    found = contents(folder)
    assert {"ranking.csv", "attributions.npz", "rows.npz"} <= set(found)
    assert b"tree kernel" in found["attributions.json"]
    return found


@pytest.mark.parametrize(
    "backend",
    [
        "loky",
        *(
            pytest.param(
                name,
                marks=pytest.mark.skipif(
                    importlib.util.find_spec(package) is None,
                    reason=f"needs {package}: pip install 'roshap[{name}]'",
                ),
            )
            for name, package in sorted(CLUSTERS.items())
        ),
    ],
)
def test_driver_killed_then_a_worker_killed_and_the_bytes_are_those_of_one_process(
    tmp_path, expected, backend
):
    status, said = study(tmp_path, backend, 2, after=7)
    assert status == -signal.SIGKILL, said
    assert len(list(tmp_path.glob("store/*/*.npz"))) == 7
    wait_until_gone(str(tmp_path))

    flag = tmp_path / "flag"
    flag.touch()
    status, said = study(tmp_path, backend, 2, flag=flag)
    assert status == 0, said
    assert "resuming: 7 of 24 runs found" in said
    assert not flag.exists(), "no worker was killed"
    assert contents(tmp_path) == expected
    wait_until_gone(str(tmp_path))
    assert not list(tmp_path.glob("store/tmp/*/"))


def wait_until_gone(word, patience=120.0):
    """Wait for the end of every process with a variable or an argument that holds the word."""
    deadline = time.monotonic() + patience
    while left := processes_with(word):
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.2)


def processes_with(word):
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            told = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if word.encode() in told:
            found.append(f"{process.name} {command[:100]}")
    return found
