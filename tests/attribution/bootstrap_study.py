"""A study for a process of its own, which can be killed: see test_bootstrap_resume.

Arguments: store, output, runs, workers, run after which the process kills itself (0: never).
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np
from xgboost import XGBClassifier

from roshap.attribution.bootstrap import BootstrapSettings, bootstrap_attributions
from roshap.compute import Executor, Progress
from roshap.datasets import from_frame


class Killer(Progress):
    """Kills its process after some runs, as ``kill -9`` would."""

    after = 0

    def advance(self):
        super().advance()
        self.after -= 1
        if self.after == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def main(store, output, runs, workers, after):
    X = np.random.default_rng(0).normal(size=(50, 5))
    data = from_frame(X, (X[:, 0] > 0).astype(int), name="study")
    progress = Killer("study", every=0)
    progress.after = int(after)
    bootstrap_attributions(
        data,
        XGBClassifier(n_estimators=3, max_depth=2, n_jobs=1, random_state=0),
        runs=int(runs),
        seed=0,
        settings=BootstrapSettings(explainer="native"),
        executor=Executor(workers=int(workers), scratch=Path(store) / "tmp"),
        store=Path(store),
        progress=progress,
    ).save(Path(output))


if __name__ == "__main__":
    main(*sys.argv[1:])
