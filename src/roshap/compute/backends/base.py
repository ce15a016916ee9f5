"""What a back end is, and what every engine does around one replicate."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import platform
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types

from roshap.compute.checkpoint import code_digest
from roshap.errors import ConfigError, RoshapError

if TYPE_CHECKING:
    from roshap.compute.executor import Executor

Function = Callable[[Any, int], Any]

#: Workers that may die before a study gives up: one lost node is bad luck, four are a lack of
#: memory that a fifth try will not mend.
DEATHS = 3

# Warnings are caught, and BLAS threads limited, for a whole process: it can run one at a time.
_one_at_a_time = threading.Lock()


class Backend(Protocol):
    """What a back end does: call ``function(shared, task)`` for each task, in any order."""

    def __call__(
        self, function: Function, shared: object, tasks: Sequence[int], executor: Executor
    ) -> Iterator[tuple[int, Any]]:
        """Yield ``(task, result)`` as the results come in."""


class Answer(NamedTuple):
    """The result of one task."""

    task: int
    value: Any


def call(function: Function, shared: object, threads: int, task: int) -> Answer:
    """Run one task on a limited number of threads."""
    with _one_at_a_time, threadpool_limits(limits=threads):
        return Answer(task, function(shared, task))


def too_many_deaths(advice: str) -> RoshapError:
    """Return the error of a study whose workers keep dying."""
    return RoshapError(
        f"{DEATHS + 1} worker processes were killed, most likely for lack of memory: {advice}; "
        "finished runs are kept"
    )


@functools.cache
def environment() -> dict[str, str]:
    """Return what must agree on all machines of a cluster, by name.

    The versions of Python and of what roshap depends on, and a digest of roshap's own code.
    """
    found = {"python": platform.python_version(), "roshap's code": code_digest("roshap")[:12]}
    for requirement in importlib.metadata.requires("roshap") or ():
        if "extra ==" in requirement:
            continue
        name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def check_environment(wanted: Mapping[str, str]) -> None:
    """Check that this process has the driver's versions; others would give other numbers.

    Raises
    ------
    ConfigError
        They differ; the message names the first difference.
    """
    here = environment()
    for name, version in wanted.items():
        if here.get(name) != version:
            raise ConfigError(
                f"worker on {socket.gethostname()} has {name} {here.get(name, 'not installed')}, "
                f"the driver {version}: install the same versions on all machines"
            )
