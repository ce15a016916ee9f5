"""Replicates on a dask cluster: one of this machine, or the one at the scheduler's address."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
from distributed import Client, Future, KilledWorker, LocalCluster, as_completed

from roshap.compute import shared as shared_data
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

#: Seconds that a cluster may take to answer and to have its first worker.
PATIENCE = 60


def run(
    function: Function, shared: object, tasks: Sequence[int], executor: Executor
) -> Iterator[tuple[int, Any]]:
    """Run on the workers of a dask cluster, one task at a time in each worker process.

    dask itself starts the tasks of a dead worker again. Where all copies of the data died with
    their workers, the tasks without a result start again with new ones.
    """
    missing = dict.fromkeys(tasks)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_settings())
        client, send = _connect(function, shared, executor, stack)
        for loss in range(DEATHS + 1):
            try:
                with contextlib.closing(_stream(client, send(), [*missing], executor)) as answers:
                    for answer in answers:
                        del missing[answer.task]
                        yield answer
                return
            except KilledWorker as error:
                raise too_many_deaths("give the workers more memory, or use fewer") from error
            except CancelledError as error:
                if loss == DEATHS:
                    advice = "the data on the cluster were lost with them"
                    raise too_many_deaths(advice) from error


def _settings() -> Any:
    """Return dask's settings for the time of a study, for its workers on this machine too."""
    return dask.config.set(
        {
            "distributed.scheduler.allowed-failures": DEATHS,
            # a replicate holds the GIL for seconds inside C code; that is no failure
            "distributed.admin.tick.limit": "1h",
            "distributed.worker.memory.terminate": False,
        }
    )


def _connect(
    function: Function, shared: object, executor: Executor, stack: contextlib.ExitStack
) -> tuple[Client, Callable[[], Path | Future]]:
    """Return a client, and what puts the data where its workers can read them."""
    if executor.address is None:
        folder = stack.enter_context(scratch_folder(executor.scratch))
        shared_data.dump((function, shared), folder)
        client = stack.enter_context(_own_cluster(executor, folder))
        return client, lambda: folder
    try:
        client = stack.enter_context(Client(executor.address, timeout=PATIENCE))
        client.wait_for_workers(1, timeout=PATIENCE)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConfigError(
            f"no dask scheduler with a worker answers at compute.address={executor.address}"
        ) from error
    _check_threads(client, executor.threads)
    # a copy for each worker at once, by way of the others; a worker that joins later fetches one
    return client, lambda: client.scatter((function, shared), broadcast=True, hash=False)


@contextlib.contextmanager
def _own_cluster(executor: Executor, folder: Path) -> Iterator[Client]:
    """Start a cluster of this machine that only this machine can reach."""
    with (
        LocalCluster(
            n_workers=executor.workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            memory_limit=0,
            local_directory=str(folder),
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, timeout=PATIENCE) as client,
    ):
        yield client


def _check_threads(client: Client, threads: int) -> None:
    """Refuse workers most of whose threads would wait: a process runs one replicate at a time."""
    for worker, count in client.nthreads().items():
        if count > threads:
            raise ConfigError(
                f"dask worker {worker} has {count} threads, and a replicate takes "
                f"compute.threads={threads}: start it with "
                f"dask worker --nworkers {max(count // threads, 1)} --nthreads {threads}"
            )


def _stream(
    client: Client, data: Path | Future, tasks: Sequence[int], executor: Executor
) -> Generator[Answer]:
    """Yield the answers; only as many tasks are out as keep the workers busy.

    Finished results would otherwise fill the workers' memory where the driver is slower.
    """
    waiting = iter(tasks)

    def submit(count: int) -> list[Future]:
        return [
            client.submit(_call, data, executor.threads, environment(), task, pure=False)
            for task in itertools.islice(waiting, count)
        ]

    running = as_completed(submit(_window(client, executor)))
    try:
        for future in running:
            answer = future.result()
            future.release()
            running.update(submit(max(_window(client, executor) - running.count(), 0)))
            yield answer
    finally:
        client.cancel(list(running.futures), force=True)


def _window(client: Client, executor: Executor) -> int:
    """Return how many tasks should be out: some wait at each worker, so that none is idle."""
    present = max(len(client.nthreads()), 1)
    return executor.workers if executor.address and executor.workers else 2 * present


def _call(
    data: Path | tuple[Function, object], threads: int, wanted: Mapping[str, str], task: int
) -> Answer:
    """Run one task in a worker."""
    check_environment(wanted)
    function, shared = shared_data.load(data) if isinstance(data, Path) else data
    return call(function, shared, threads, task)
