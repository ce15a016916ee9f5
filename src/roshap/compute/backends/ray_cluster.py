"""Replicates on a ray cluster: one of this machine, or the one at the head node's address."""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import logging
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from roshap.compute.backends.base import (
    DEATHS,
    Answer,
    Function,
    call,
    check_environment,
    environment,
    too_many_deaths,
)
from roshap.compute.scratch import scratch_folder
from roshap.errors import ConfigError

if TYPE_CHECKING:
    from roshap.compute.executor import Executor

# Read when ray is imported and when its processes start. Ray reports its use unless told not to.
_ALWAYS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_task_oom_retries": str(DEATHS),
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}

# A Unix socket's path has at most 107 bytes, of which ray's own folders and names take this many.
_SOCKET_PATH = 107
_SOCKET_NAME = len("/session_2000-01-01_00-00-00_000000_0000000/sockets/plasma_store")


def run(
    function: Function, shared: object, tasks: Sequence[int], executor: Executor
) -> Iterator[tuple[int, Any]]:
    """Run as ray tasks; ray itself starts the tasks of a dead worker again.

    The data lie once in the object store of each node, which all its workers map.
    """
    with _session(executor) as ray:
        from ray.exceptions import OutOfMemoryError, RayTaskError, WorkerCrashedError

        data = ray.put((function, shared))
        options = {"num_cpus": executor.threads, "max_retries": DEATHS, "name": "roshap replicate"}
        remote = ray.remote(**options)(_call)
        waiting = iter(tasks)
        running: list[Any] = []
        try:
            while True:
                free = _window(ray, executor) - len(running)
                running += [
                    remote.remote(data, executor.threads, environment(), task)
                    for task in itertools.islice(waiting, max(free, 0))
                ]
                if not running:
                    return
                (ready,), running = ray.wait(running, num_returns=1)
                yield ray.get(ready)
        except RayTaskError as error:
            raise (error.cause if isinstance(error.cause, Exception) else error) from None
        except (WorkerCrashedError, OutOfMemoryError) as error:
            raise too_many_deaths("give the workers more memory, or use fewer") from error
        finally:
            for reference in running:
                ray.cancel(reference, force=True)


@contextlib.contextmanager
def _session(executor: Executor) -> Iterator[ModuleType]:
    """Connect to ray, or start it, unless the caller's program has done so."""
    own = {} if executor.address else _alone_on_this_machine()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_variables({**own, **_ALWAYS}))
        ray = importlib.import_module("ray")
        if ray.is_initialized():
            yield ray
            return
        if executor.address is None:
            _start(ray, executor, _short(stack.enter_context(scratch_folder())))
        else:
            _join(ray, executor.address)
        stack.callback(ray.shutdown)
        yield ray


_QUIET = {"logging_level": logging.CRITICAL, "log_to_driver": False}


def _start(ray: ModuleType, executor: Executor, folder: Path) -> None:
    """Start ray on this machine; all that it writes lies in the folder."""
    ray.init(
        num_cpus=executor.workers * executor.threads,
        num_gpus=0,
        include_dashboard=False,
        _temp_dir=str(folder),
        **_QUIET,
    )


def _join(ray: ModuleType, address: str) -> None:
    """Connect to a running cluster."""
    try:
        ray.init(address=address, **_QUIET)
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(f"no ray cluster answers at compute.address={address}") from error


@functools.cache
def _alone_on_this_machine() -> dict[str, str]:
    """Return the variables that keep ray to the loopback address, and out of the home folder.

    ray protects its ports with a token that it would otherwise write to ``~/.ray``.
    """
    return {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_AUTH_TOKEN": os.environ.get("RAY_AUTH_TOKEN") or secrets.token_hex(32),
    }


@contextlib.contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the time of a block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _short(folder: Path) -> Path:
    """Return a folder that is short enough for ray's sockets.

    Raises
    ------
    ConfigError
        It is not.
    """
    if len(os.fsencode(folder)) + _SOCKET_NAME > _SOCKET_PATH:
        raise ConfigError(
            f"ray's sockets need a temporary folder with a shorter path than {folder}: "
            "set TMPDIR, e.g. TMPDIR=/tmp"
        )
    return folder


def _window(ray: ModuleType, executor: Executor) -> int:
    """Return how many tasks should be out: twice what runs at once, so that no worker is idle."""
    if executor.address and executor.workers:
        return executor.workers
    return 2 * max(1, int(ray.cluster_resources().get("CPU", 1)) // executor.threads)


def _call(
    data: tuple[Function, object], threads: int, wanted: Mapping[str, str], task: int
) -> Answer:
    """Run one task in a worker."""
    check_environment(wanted)
    function, shared = data
    return call(function, shared, threads, task)
