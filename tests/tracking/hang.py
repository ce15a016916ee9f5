"""Open a run with a child, say so, and wait to be killed. Usage: hang.py ROOT."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from roshap.tracking import TrackSettings, track

with (
    track(
        TrackSettings(),
        stage="attribute",
        experiment="wine-xgboost",
        study="quick",
        params={},
        command="roshap attribute",
        root=Path(sys.argv[1]),
    ) as run,
    run.child("one method") as child,
):
    print(run.run_id, child.run_id, flush=True)
    time.sleep(600)
