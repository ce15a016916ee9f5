"""Replicates on this machine: in this process, or in worker processes (loky)."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from roshap.compute import shared as shared_data
from roshap.compute.backends.base import DEATHS, Answer, Function, call, too_many_deaths
from roshap.compute.scratch import scratch_folder

if TYPE_CHECKING:
    from roshap.compute.executor import Executor


def run_here(
    function: Function, shared: object, tasks: Sequence[int], executor: Executor
) -> Iterator[tuple[int, Any]]:
    """Run in this process, one task after the other."""
    for task in tasks:
        yield call(function, shared, executor.threads, task)


def run_in_processes(
    function: Function, shared: object, tasks: Sequence[int], executor: Executor
) -> Iterator[tuple[int, Any]]:
    """Run in worker processes of this machine; the shared data goes to them through a file.

    A worker that dies takes all others with it: the tasks without a result start again.
    """
    if min(executor.workers, len(tasks)) == 1:
        yield from run_here(function, shared, tasks, executor)
        return
    missing = dict.fromkeys(tasks)
    with scratch_folder(executor.scratch) as folder:
        shared_data.dump((function, shared), folder)
        for death in range(DEATHS + 1):
            try:
                with contextlib.closing(_pool(folder, list(missing), executor)) as answers:
                    for answer in answers:
                        del missing[answer.task]
                        yield answer
                return
            except TerminatedWorkerError as error:
                if death == DEATHS:
                    advice = f"use fewer than {executor.workers} workers"
                    raise too_many_deaths(advice) from error


def _pool(folder: Path, tasks: Sequence[int], executor: Executor) -> Generator[Answer]:
    """Run the tasks in one set of worker processes."""
    work = functools.partial(_call_in_worker, os.getpid(), folder, executor.threads)
    with joblib.parallel_config(backend="loky", inner_max_num_threads=executor.threads):
        results = joblib.Parallel(
            n_jobs=executor.workers, return_as="generator_unordered", batch_size=1
        )(joblib.delayed(work)(task) for task in tasks)
    try:
        # not `yield from`, which would close the results where their warning is not caught
        for answer in results:  # noqa: UP028
            yield answer
    finally:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*have been cancelled")
            results.close()


def _call_in_worker(parent: int, folder: Path, threads: int, task: int) -> Answer:
    _end_with(parent)
    function, shared = shared_data.load(folder)
    return call(function, shared, threads, task)


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
