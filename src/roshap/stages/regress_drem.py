"""DREM: the experiments of ``conf/regression/drem_*.yaml``."""

from __future__ import annotations

from roshap.errors import ConfigError
from roshap.stages.config import RootConfig
from roshap.stages.context import StageContext
from roshap.stages.regress import Findings, Job
from roshap.stages.regress_drem_config import DremConfig
from roshap.stages.regress_drem_other import classify, signals
from roshap.stages.regress_drem_sweeps import criteria, epochs, swept
from roshap.tracking import StageRun

STUDIES = {
    "epochs": epochs,
    "noise": swept,
    "rows": swept,
    "features": swept,
    "criteria": criteria,
    "classify": classify,
    "signals": signals,
}


def run(config: RootConfig, context: StageContext, job: Job, run: StageRun) -> Findings:
    """Run the experiment, write its tables and figures; return what was found.

    Raises
    ------
    ConfigError
        Where the task of the data set does not fit the study.
    """
    chosen = config.regression
    assert isinstance(chosen, DremConfig)
    if job.data is not None:
        numbers = chosen.study != "classify"
        if (job.data.task == "regression") != numbers:
            wanted = "a number" if numbers else "classes"
            raise ConfigError(
                f"regression={chosen.name} predicts {wanted}, but {job.data.name} is a "
                f"{job.data.task} task: choose another dataset"
            )
    return STUDIES[chosen.study](config, job, run)
