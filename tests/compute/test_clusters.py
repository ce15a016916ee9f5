"""dask and ray on real clusters of this machine, each with two worker processes."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

from roshap.compute import Executor
from roshap.compute.backends import CLUSTERS, base
from roshap.errors import ConfigError, DataError, RoshapError

pytestmark = pytest.mark.xdist_group("clusters")


def needs(backend):
    package = CLUSTERS[backend]
    return pytest.mark.skipif(
        importlib.util.find_spec(package) is None,
        reason=f"needs {package}: pip install 'roshap[{backend}]'",
    )


@pytest.fixture
def dask_home(tmp_path, monkeypatch):
    """Keep dask's own files in a temporary folder, and its patience with dead workers short."""
    monkeypatch.setenv("DASK_CONFIG", str(tmp_path / "dask"))
    import dask
    import distributed  # noqa: F401  # its settings come with it

    with dask.config.set({"distributed.comm.timeouts.connect": "3s"}):
        yield


@pytest.fixture
def address(dask_home, tmp_path):
    """Return the address of a dask cluster that somebody else has started."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
        local_directory=str(tmp_path / "workers"),
    ) as cluster:
        yield cluster.scheduler_address


@needs("dask")
def test_dask_cluster_at_an_address(address, tmp_path):
    executor = Executor(backend="dask", address=address, scratch=tmp_path)

    def square(shared, task):
        import os

        import numpy as np
        from threadpoolctl import threadpool_info

        np.ones((8, 8)) @ np.ones((8, 8))
        return shared[task] ** 2, os.getpid(), {pool["num_threads"] for pool in threadpool_info()}

    answers = dict(executor.run(square, np.arange(20_000.0), range(12)))
    assert {task: value for task, (value, _, _) in answers.items()} == {
        task: float(task) ** 2 for task in range(12)
    }
    assert os.getpid() not in {process for _, process, _ in answers.values()}
    assert {tuple(threads) for _, _, threads in answers.values()} == {(1,)}

    def fail(shared, task):
        from roshap.errors import DataError

        raise DataError(f"task {task} is bad")

    with pytest.raises(DataError, match=r"^task 7 is bad$"):
        list(executor.run(fail, None, [7]))

    flag = tmp_path / "flag"
    flag.touch()

    def die_once(shared, task):
        import os
        import signal
        import time

        if task == 2 and flag.exists():
            flag.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.05)
        return float(shared.sum())

    answers = dict(executor.run(die_once, np.ones(20_000), range(20)))
    assert answers == dict.fromkeys(range(20), 20_000.0)
    assert not flag.exists()


@needs("dask")
def test_data_are_not_sent_to_a_dask_worker_with_each_task(address, tmp_path):
    """An object counts, in each worker, how often it is unpickled."""

    class Parcel:
        def __init__(self):
            self.content = np.ones(1000)

        def __setstate__(self, state):
            import os

            self.__dict__.update(state)
            os.environ["PARCELS"] = str(int(os.environ.get("PARCELS", "0")) + 1)

    def count(shared, task):
        import os

        return os.getpid(), int(os.environ.get("PARCELS", "0")), shared.content.sum()

    executor = Executor(backend="dask", address=address, scratch=tmp_path)
    answers = [answer for _, answer in executor.run(count, Parcel(), range(40))]
    # once, unless dask's memory manager took a copy from a worker that was idle for seconds
    assert max(count for _, count, _ in answers) <= 3
    assert {total for _, _, total in answers} == {1000.0}


@needs("dask")
def test_dask_worker_of_many_threads_is_refused(dask_home, tmp_path):
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1,
        threads_per_worker=4,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        local_directory=str(tmp_path),
    ) as cluster:
        executor = Executor(backend="dask", address=cluster.scheduler_address)
        with pytest.raises(ConfigError, match=r"has 4 threads.*--nworkers 4 --nthreads 1"):
            list(executor.run(lambda shared, task: task, None, [0]))


@needs("dask")
def test_no_scheduler_at_the_address(dask_home, monkeypatch):
    monkeypatch.setattr("roshap.compute.backends.dask_cluster.PATIENCE", 0.5)
    executor = Executor(backend="dask", address="tcp://127.0.0.1:9")
    with pytest.raises(ConfigError, match=r"compute.address=tcp://127.0.0.1:9"):
        list(executor.run(lambda shared, task: task, None, [0]))


@needs("ray")
def test_ray_keeps_to_itself(tmp_path):
    """One session: results, errors, data by reference, loopback only, nothing in the home."""
    code = """
import os
import numpy as np
import pytest
from roshap.compute import Executor
from roshap.errors import DataError

def square(shared, task):
    import os
    if task == 99:
        from roshap.errors import DataError
        raise DataError("task 99 is bad")
    return shared[task] ** 2, os.getpid(), shared.flags.writeable

def listening():
    lines = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}")]
    return {words[1] for words in lines if words[3] == "0A"}

before = listening()
run = Executor(backend="ray", workers=2).run(square, np.arange(200_000.0), [*range(12), 99])
answers = {}
with pytest.raises(DataError, match="^task 99 is bad$"):
    for task, answer in run:
        answers[task] = answer
        if len(answers) == 1:
            here = {socket.rpartition(":")[0] for socket in listening() - before}
            assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
            import ray._common.usage.usage_lib as usage
            assert not usage.usage_stats_enabled()
assert {task: value for task, (value, _, _) in answers.items()} == {
    task: float(task) ** 2 for task in answers}
assert len(answers) >= 9  # all but those that were out when the error came
assert len({process for _, process, _ in answers.values()} - {os.getpid()}) >= 1
assert {writeable for *_, writeable in answers.values()} == {False}
assert here and here <= {"0100007F", "0000000000000000FFFF00000100007F"}, here
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())


@needs("ray")
def test_temporary_folder_that_is_too_long_for_ray(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / ("long" * 20)))
    with pytest.raises(ConfigError, match="TMPDIR=/tmp"):
        list(Executor(backend="ray", workers=2).run(lambda shared, task: task, None, [0]))


@pytest.mark.parametrize("backend", sorted(CLUSTERS))
def test_missing_package_says_what_to_install(backend, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=rf"pip install 'roshap\[{backend}\]'"):
        Executor(backend=backend)


def test_the_command_line_imports_no_cluster_library():
    code = (
        "import sys; from roshap.compute import Executor; Executor(); "
        "sys.exit(', '.join({'ray', 'dask', 'distributed'} & set(sys.modules)) or 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_machines_with_other_versions_are_refused():
    here = base.environment()
    assert {"python", "numpy", "xgboost", "roshap's code"} <= set(here)
    base.check_environment(here)
    with pytest.raises(ConfigError, match=r"has numpy .*, the driver 1\.0"):
        base.check_environment({**here, "numpy": "1.0"})
    with pytest.raises(RoshapError, match="has cobra not installed"):
        base.check_environment({**here, "cobra": "1.0"})
