import multiprocessing
import os
import warnings

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from roshap.compute import Executor, scratch_folder
from roshap.compute.shared import dump, load
from roshap.errors import ConfigError, DataError, RoshapError


@pytest.fixture(params=[1, 2], ids=["serial", "loky"])
def executor(request, tmp_path):
    return Executor(workers=request.param, scratch=tmp_path)


def test_every_task_once_with_its_result(executor):
    def square(shared, task):
        return shared[task] ** 2

    shared = np.arange(20_000.0)
    results = dict(executor.run(square, shared, [3, 1, 7, 19_999]))
    assert results == {3: 9.0, 1: 1.0, 7: 49.0, 19_999: 19_999.0**2}


def test_no_task_starts_nothing(executor):
    assert list(executor.run(lambda shared, task: task, None, [])) == []


def test_workers_get_large_arrays_as_one_read_only_map(tmp_path):
    def inspect(shared, task):
        import numpy as np

        owner = shared
        while isinstance(owner, np.ndarray) and not isinstance(owner, np.memmap):
            owner = owner.base if isinstance(owner.base, np.ndarray) else owner.base.obj
        return shared.flags.writeable, type(owner).__name__, shared.flags.c_contiguous

    shared = np.ones((300, 400))
    for _, seen in Executor(workers=2, scratch=tmp_path).run(inspect, shared, range(2)):
        assert seen == (False, "memmap", True)


def test_one_thread_inside_a_replicate(executor):
    def threads(shared, task):
        import os

        import numpy as np
        from threadpoolctl import threadpool_info

        np.ones((8, 8)) @ np.ones((8, 8))
        return [pool["num_threads"] for pool in threadpool_info()], os.environ.get(
            "OMP_NUM_THREADS"
        )

    outside = [pool["num_threads"] for pool in threadpool_info()]
    for _, (pools, variable) in executor.run(threads, None, range(3)):
        assert set(pools) == {1}
        if executor.workers > 1:
            assert variable == "1"
    assert [pool["num_threads"] for pool in threadpool_info()] == outside


def test_error_of_a_replicate_arrives_as_it_was(executor):
    def fail(shared, task):
        from roshap.errors import DataError

        raise DataError(f"task {task} is bad")

    with pytest.raises(DataError, match=r"^task 0 is bad$"):
        list(executor.run(fail, None, [0, 0]))


def test_killed_worker_is_said_in_one_line(tmp_path):
    def die(shared, task):
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(RoshapError, match="4 worker processes were killed") as caught:
        list(Executor(workers=2, scratch=tmp_path).run(die, None, range(2)))
    assert "\n" not in str(caught.value)


def test_tasks_of_a_worker_killed_once_start_again(tmp_path):
    flag = tmp_path / "flag"
    flag.touch()

    def die_once(shared, task):
        import os
        import signal

        if task == 2 and flag.exists():
            flag.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return task

    results = list(Executor(workers=2, scratch=tmp_path).run(die_once, None, range(6)))
    assert sorted(results) == [(task, task) for task in range(6)]
    assert not flag.exists()


def test_nothing_is_left_in_the_scratch_folder(executor, tmp_path):
    list(executor.run(lambda shared, task: shared.sum(), np.ones(100_000), range(4)))
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_stopping_early_leaves_nothing(tmp_path):
    results = Executor(workers=2, scratch=tmp_path).run(
        lambda shared, task: task, np.ones(100_000), range(50)
    )
    next(results)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results.close()
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_zero_workers_are_the_cores_that_may_be_used(monkeypatch):
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    assert Executor().workers == joblib.cpu_count()
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    assert Executor().workers == 8
    assert Executor(threads=3).workers == 2
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "4")
    assert Executor().workers == 4


@pytest.mark.parametrize(
    ("workers", "threads", "message"),
    [
        (3, 3, r"^compute.workers=3 x compute.threads=3: more than the 8 cores"),
        (0, 9, r"^compute.threads=9: more than the 8 cores"),
    ],
)
def test_workers_and_threads_share_the_cores(monkeypatch, workers, threads, message):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    with pytest.raises(ConfigError, match=message):
        Executor(workers=workers, threads=threads)
    assert Executor(workers=4, threads=2).workers == 4
    # one thread each: the workers are what was asked for
    assert Executor(workers=20).workers == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"backend": "lokky"}, r"compute.backend 'lokky' \(valid: dask, loky, ray, serial\)"),
        ({"address": "tcp://a:1"}, r"compute.address=tcp://a:1: backend 'loky' .*dask, ray"),
        ({"workers": -1}, "compute.workers=-1"),
        ({"threads": 0}, "compute.threads=0"),
    ],
)
def test_wrong_settings_name_the_value(arguments, message):
    with pytest.raises(ConfigError, match=message):
        Executor(**arguments)


def test_shared_values_survive_the_file(tmp_path):
    value = {
        "C": np.arange(40_000.0).reshape(200, 200),
        "F": np.asfortranarray(np.arange(40_000.0).reshape(200, 200)),
        "small": np.arange(3),
        "objects": np.array(["a", None], dtype=object),
        "text": "x",
    }
    dump(value, tmp_path)
    loaded = load(tmp_path)
    for name in ("C", "F", "small", "objects"):
        np.testing.assert_array_equal(loaded[name], value[name])
    assert loaded["F"].flags.f_contiguous
    assert len(list(tmp_path.glob("*.bin"))) == 2


def _hold_a_scratch_folder(parent, ready):
    with scratch_folder(parent) as folder:
        (folder / "file").write_text("x")
        ready.set()
        os.kill(os.getpid(), 9)


def test_folder_of_a_killed_process_is_removed_and_a_living_one_kept(tmp_path):
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    child = context.Process(target=_hold_a_scratch_folder, args=(tmp_path, ready))
    child.start()
    assert ready.wait(30)
    child.join(30)
    (abandoned,) = tmp_path.glob("scratch-*/")
    with scratch_folder(tmp_path) as mine, scratch_folder(tmp_path) as second:
        assert not abandoned.exists()
        assert mine.exists()
        assert second.exists()
