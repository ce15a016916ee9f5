"""Where replicates can run: one file per engine, imported when it is chosen."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from roshap.compute.backends.base import Backend, Function
from roshap.compute.backends.local import run_here, run_in_processes
from roshap.errors import ConfigError

if TYPE_CHECKING:
    from roshap.compute.executor import Executor

__all__ = ["BACKENDS", "CLUSTERS", "Backend", "Function", "check_installed"]

#: Engines that can span machines, with the package that each needs; ``roshap[<name>]`` has it.
CLUSTERS = {"dask": "distributed", "ray": "ray"}


def _cluster(name: str) -> Backend:
    """Return a back end whose module is imported with its first use."""

    def run(
        function: Function, shared: object, tasks: Sequence[int], executor: Executor
    ) -> Iterator[tuple[int, Any]]:
        module = importlib.import_module(f"roshap.compute.backends.{name}_cluster")
        yield from module.run(function, shared, tasks, executor)

    return run


BACKENDS: dict[str, Backend] = {
    "serial": run_here,
    "loky": run_in_processes,
    **{name: _cluster(name) for name in CLUSTERS},
}


def check_installed(backend: str) -> None:
    """Check that the package behind a back end is there.

    Raises
    ------
    ConfigError
        It is missing; the message says what to install.
    """
    package = CLUSTERS.get(backend)
    if package is not None and importlib.util.find_spec(package) is None:
        raise ConfigError(
            f"compute.backend={backend} needs the package {package!r}, which is not installed: "
            f"pip install 'roshap[{backend}]'"
        )
