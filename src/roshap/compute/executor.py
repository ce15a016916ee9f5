"""Run independent replicates, here or in parallel, with results that do not depend on where.

A back end is a function registered by name in :data:`BACKENDS`; engines of a cluster (dask, ray)
are added there.
"""

from __future__ import annotations

import functools
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types

from roshap.compute import shared as shared_data
from roshap.compute.scratch import scratch_folder
from roshap.errors import ConfigError, RoshapError

Function = Callable[[Any, int], Any]


class Backend(Protocol):
    """What a back end does: call ``function(shared, task)`` for each task, in any order."""

    def __call__(
        self, function: Function, shared: object, tasks: Sequence[int], executor: Executor
    ) -> Iterator[tuple[int, Any]]:
        """Yield ``(task, result)`` as the results come in."""


def _serial(
    function: Function, shared: object, tasks: Sequence[int], executor: Executor
) -> Iterator[tuple[int, Any]]:
    """Run in this process, one task after the other."""
    for task in tasks:
        with threadpool_limits(limits=executor.threads):
            result = function(shared, task)
        yield task, result


def _loky(
    function: Function, shared: object, tasks: Sequence[int], executor: Executor
) -> Iterator[tuple[int, Any]]:
    """Run in worker processes of this machine; the shared data goes to them through a file."""
    with scratch_folder(executor.scratch) as folder:
        shared_data.dump((function, shared), folder)
        call = functools.partial(_call_in_worker, os.getpid(), folder, executor.threads)
        with joblib.parallel_config(backend="loky", inner_max_num_threads=executor.threads):
            results = joblib.Parallel(
                n_jobs=executor.workers, return_as="generator_unordered", batch_size=1
            )(joblib.delayed(call)(task) for task in tasks)
        try:
            for answer in results:
                yield answer.task, answer.value
        except TerminatedWorkerError as error:
            raise RoshapError(
                "a worker process was killed, most likely for lack of memory: "
                f"use fewer than {executor.workers} workers; finished runs are kept"
            ) from error
        finally:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*have been cancelled")
                results.close()


class _Answer(NamedTuple):
    task: int
    value: Any


def _call_in_worker(parent: int, folder: Path, threads: int, task: int) -> _Answer:
    _end_with(parent)
    function, shared = shared_data.load(folder)
    with threadpool_limits(limits=threads):
        return _Answer(task, function(shared, task))


@functools.cache
def _end_with(parent: int) -> None:
    """End this process soon after its parent, which may be killed without a chance to say so.

    Idle workers would otherwise stay for minutes, with their memory and the terminal's streams.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    if os.name == "posix":
        threading.Thread(target=watch, daemon=True, name="roshap parent watch").start()


BACKENDS: dict[str, Backend] = {"serial": _serial, "loky": _loky}


@dataclass(frozen=True)
class Executor:
    """Where replicates run.

    Parameters
    ----------
    backend
        Name of a back end in :data:`BACKENDS`.
    workers
        Replicates that run at the same time; 0 means one for each core that this process may use
        (affinity and the limits of a container count). With 1 everything runs in this process.
    threads
        Threads of BLAS and OpenMP inside a replicate.
    scratch
        Folder for the data that workers share; the system's temporary folder by default.

    Raises
    ------
    ConfigError
        Where the back end is unknown or a count is out of range.
    """

    backend: str = "loky"
    workers: int = 0
    threads: int = 1
    scratch: Path | None = None

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise ConfigError(
                f"unknown compute.backend {self.backend!r} (valid: {', '.join(sorted(BACKENDS))})"
            )
        if self.workers < 0:
            raise ConfigError(f"compute.workers={self.workers}: must be 0 (all cores) or more")
        if self.threads < 1:
            raise ConfigError(f"compute.threads={self.threads}: must be 1 or more")
        if self.workers == 0:
            object.__setattr__(self, "workers", joblib.cpu_count())

    def run(
        self, function: Function, shared: object, tasks: Sequence[int]
    ) -> Iterator[tuple[int, Any]]:
        """Yield ``(task, function(shared, task))`` for each task, in the order they finish.

        Parameters
        ----------
        function
            A function that changes nothing outside itself. Its result may depend on its two
            arguments only.
        shared
            What all tasks read. Workers see its arrays as read-only memory maps.
        tasks
            Numbers of the replicates.
        """
        if not tasks:
            return
        backend = BACKENDS["serial" if min(self.workers, len(tasks)) == 1 else self.backend]
        yield from backend(function, shared, tasks, self)
