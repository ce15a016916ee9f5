"""Run independent replicates, here or in parallel, with results that do not depend on where."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib

from roshap.compute.backends import BACKENDS, CLUSTERS, Function, check_installed
from roshap.errors import ConfigError


def _cores() -> int:
    """Return the cores that this process may use: affinity, container and Slurm job count."""
    granted = os.environ.get("SLURM_CPUS_PER_TASK", "")
    cores: int = joblib.cpu_count()
    return min(cores, int(granted)) if granted.isdigit() else cores


@dataclass(frozen=True)
class Executor:
    """Where replicates run.

    Parameters
    ----------
    backend
        Name of a back end in :data:`~roshap.compute.backends.BACKENDS`.
    workers
        Replicates that run at the same time; 0 means as many as there are cores for on this
        machine (affinity, a container's limits and a Slurm job's share count), or workers in the
        cluster at ``address``. With 1, loky runs everything in this process.
    threads
        Threads of BLAS and OpenMP inside a replicate.
    scratch
        Folder for the data that workers share; the system's temporary folder by default.
    address
        The cluster of the back ends ``dask`` (the scheduler's address) and ``ray`` (the head
        node's). By default they start one on this machine for as long as the replicates take.

    Raises
    ------
    ConfigError
        Where the back end is unknown or not installed, a count is out of range, or several
        threads in each worker need more cores than there are.
    """

    backend: str = "loky"
    workers: int = 0
    threads: int = 1
    scratch: Path | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise ConfigError(
                f"unknown compute.backend {self.backend!r} (valid: {', '.join(sorted(BACKENDS))})"
            )
        if self.workers < 0:
            raise ConfigError(f"compute.workers={self.workers}: must be 0 (all cores) or more")
        if self.threads < 1:
            raise ConfigError(f"compute.threads={self.threads}: must be 1 or more")
        if self.address is not None and self.backend not in CLUSTERS:
            raise ConfigError(
                f"compute.address={self.address}: backend {self.backend!r} runs on this machine "
                f"only (with an address: {', '.join(sorted(CLUSTERS))})"
            )
        check_installed(self.backend)
        if self.address is None:
            self._keep_to_the_cores()

    def _keep_to_the_cores(self) -> None:
        """Choose the workers, and refuse threads that would fight for cores."""
        cores = _cores()
        if self.threads > 1 and self.threads * max(self.workers, 1) > cores:
            workers = f"compute.workers={self.workers} x " if self.workers > 1 else ""
            raise ConfigError(
                f"{workers}compute.threads={self.threads}: more than the {cores} cores that this "
                "process may use"
            )
        if self.workers == 0:
            object.__setattr__(self, "workers", cores // self.threads)

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
            What all tasks read and none may change. It is sent once, not with every task.
        tasks
            Numbers of the replicates.
        """
        if tasks:
            yield from BACKENDS[self.backend](function, shared, tasks, self)
