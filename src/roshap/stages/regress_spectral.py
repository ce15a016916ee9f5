"""Spectral filtering: the experiments of ``conf/regression/spectral_*.yaml``."""

from __future__ import annotations

from roshap.stages.config import RootConfig
from roshap.stages.context import StageContext
from roshap.stages.regress import Findings, Job
from roshap.tracking import StageRun


def run(config: RootConfig, context: StageContext, job: Job, run: StageRun) -> Findings:
    """Run the experiment, write its tables and figures; return what was found."""
    raise NotImplementedError
