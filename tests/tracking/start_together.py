"""Fork processes that all open a run in one fresh store at the same moment.

Usage: start_together.py ROOT PROCESSES. Exit code 0 if every process has logged its run.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

from roshap.tracking import TrackSettings, track
from roshap.tracking.store import import_mlflow

POINTS = 1500


def log_one_run(root: Path, number: int) -> None:
    with track(
        TrackSettings(),
        stage="attribute",
        experiment=f"experiment-{number}",
        study="quick",
        params={"number": number},
        command="roshap attribute",
        root=root,
    ) as run:
        run.log_series("loss", range(POINTS), [float(number)] * POINTS)


def main() -> int:
    root, processes = Path(sys.argv[1]), int(sys.argv[2])
    import_mlflow()  # once, before the fork: the test is about the store, not about imports
    import mlflow.store.tracking.sqlalchemy_store  # noqa: F401  (MLflow imports it when needed)

    waiting, starting = os.pipe()
    children = []
    for number in range(processes):
        if pid := os.fork():
            children.append(pid)
            continue
        os.close(starting)
        os.read(waiting, 1)  # returns when the parent closes its end: all start together
        try:
            log_one_run(root, number)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(starting)
    return sum(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0 for pid in children)


if __name__ == "__main__":
    sys.exit(main())
