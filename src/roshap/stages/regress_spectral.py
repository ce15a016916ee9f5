"""Spectral filtering: the experiments of ``conf/regression/spectral_*.yaml``."""

from __future__ import annotations

from roshap.stages.config import RootConfig
from roshap.stages.context import StageContext
from roshap.stages.regress import Findings, Job
from roshap.stages.regress_spectral_config import SpectralConfig
from roshap.stages.spectral_picture import picture
from roshap.stages.spectral_problems import problems
from roshap.stages.spectral_table import table
from roshap.tracking import StageRun


def run(config: RootConfig, context: StageContext, job: Job, run: StageRun) -> Findings:
    """Run the experiment, write its tables and figures; return what was found."""
    chosen = config.regression
    assert isinstance(chosen, SpectralConfig)
    if chosen.problems is not None:
        return problems(chosen, job, run)
    return table(chosen, job, run) if chosen.table is not None else picture(chosen, job, run)
