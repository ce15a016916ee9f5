"""Where to look: the study's report, and MLflow's pages on the loopback address."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from roshap.errors import RoshapError
from roshap.stages.report import PAGE
from roshap.stages.study import load_study
from roshap.stages.workspace import Workspace
from roshap.tracking import TrackSettings, ensure_store, tracking_uri

DEFAULT_PORT = 5000


def where(workspace: Workspace) -> int:
    """Print where the selected study's report is and how to open MLflow."""
    study = load_study(workspace.params)
    page = workspace.root / "reports" / study.study / PAGE
    if not page.is_file():
        raise RoshapError(f"no report of study {study.study} yet: dvc repro makes it")
    print(f"report  {page}")
    print("MLflow  make ui  (or: roshap ui), then open http://127.0.0.1:5000")
    return 0


def serve(arguments: Sequence[str], workspace: Workspace) -> int:
    """Run MLflow's server on 127.0.0.1 over the store that the stages log to."""
    port = arguments[0] if arguments else str(DEFAULT_PORT)
    if len(arguments) > 1 or not port.isdecimal() or not 0 < int(port) < 65536:
        raise RoshapError(
            f"roshap ui takes one port number (1 to 65535), got {' '.join(arguments)}"
        )
    uri = tracking_uri(TrackSettings(), workspace.root)
    ensure_store(uri, workspace.root)
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", port]
    command += ["--backend-store-uri", uri]
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
    return subprocess.run(command, env=environment, cwd=workspace.root, check=False).returncode
