"""A study for a process of its own, whose workers and driver can be killed.

Arguments: back end, workers, store, output, run after which the process kills itself (0: never),
file that the first worker removes which then kills itself (- for none).
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from roshap.attribution.bootstrap import BootstrapSettings, bootstrap_attributions
from roshap.attribution.ranking import rank_attributions
from roshap.compute import Executor, Progress
from roshap.datasets import from_frame


class Mortal(RandomForestRegressor):
    """A forest that kills its process, once, where the file of ROSHAP_TEST_KILL is there."""

    def fit(self, X, y, sample_weight=None):
        try:
            os.unlink(os.environ.get("ROSHAP_TEST_KILL", "-"))
        except FileNotFoundError:
            return super().fit(X, y, sample_weight)
        os.kill(os.getpid(), signal.SIGKILL)


class Killer(Progress):
    """Kills its process after some runs, as ``kill -9`` would."""

    after = 0

    def advance(self):
        super().advance()
        self.after -= 1
        if self.after == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def main(backend, workers, store, output, after, flag):
    os.environ["ROSHAP_TEST_KILL"] = flag
    X = np.random.default_rng(0).normal(size=(120, 6))
    data = from_frame(X, X[:, 0] + X[:, 1] * X[:, 2], task="regression", name="study")
    progress = Killer("study", every=0)
    progress.after = int(after)
    result = bootstrap_attributions(
        data,
        Mortal(n_estimators=4, max_depth=4, n_jobs=1, random_state=0),
        runs=24,
        seed=0,
        settings=BootstrapSettings(),
        executor=Executor(backend=backend, workers=int(workers), scratch=Path(store) / "tmp"),
        store=Path(store),
        progress=progress,
    )
    result.save(Path(output))
    rank_attributions(result).to_csv(Path(output) / "ranking.csv", index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
