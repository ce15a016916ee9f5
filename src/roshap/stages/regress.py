"""Stage ``regress``: one experiment with regression solvers, by DREM or by spectral filtering."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from roshap.compute.files import write_json
from roshap.datasets import Dataset
from roshap.errors import ConfigError
from roshap.stages.config import RootConfig
from roshap.stages.context import StageContext, parameters
from roshap.stages.data import data_input, load_data, table_folder
from roshap.tracking import StageRun, write_lineage

log = logging.getLogger(__name__)

FOLDER = "regress"
TIMING = "timing"
SUMMARY = "summary.json"


@dataclass(frozen=True)
class Job:
    """What an experiment works on and where it puts its results.

    Attributes
    ----------
    folder
        Empty; takes the place of ``<out>/regress`` when the experiment ends well.
    lineage
        The block for :func:`roshap.plots.save_figure`.
    timing
        The same for ``<out>/timing``: whatever holds a measured time. Such files differ from one
        execution to the next: DVC ignores them and the report leaves them out; MLflow has them.
    data
        The table, for experiments that read one.
    """

    folder: Path
    timing: Path
    lineage: Mapping[str, str]
    data: Dataset | None


@dataclass(frozen=True)
class ShownTable:
    """A table of the report; the CSV behind it has every digit.

    Attributes
    ----------
    file
        The CSV, relative to the experiment's folder.
    columns, rows
        Headings, and cells as they are shown.
    """

    caption: str
    file: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Timing:
    """Figures (their captions) and tables with measured times."""

    captions: Mapping[str, str] = field(default_factory=dict)
    tables: Sequence[ShownTable] = ()


@dataclass(frozen=True)
class Findings:
    """What an experiment found, for MLflow, DVC and the report.

    Attributes
    ----------
    metrics
        The numbers that ``dvc metrics`` and MLflow compare between runs.
    sentence
        The finding, for a person.
    facts
        Label -> text: what it was measured on.
    notes
        What a reader should know before believing it.
    captions
        Figure (its file's stem) -> caption, in the order of the page.
    timing
        What lies in ``<out>/timing``.
    """

    metrics: Mapping[str, float | int | str | None]
    sentence: str
    facts: Mapping[str, str]
    captions: Mapping[str, str]
    tables: Sequence[ShownTable] = ()
    notes: Sequence[str] = ()
    timing: Timing = field(default_factory=Timing)


#: ``run(config, context, job, run)`` of ``regress_<method>``.
Experiment = Callable[[RootConfig, StageContext, Job, StageRun], Findings]


def regress(config: RootConfig, context: StageContext) -> Path:
    """Run the experiment of ``conf/regression``, write ``<out>/regress``; return it.

    Raises
    ------
    ConfigError
        Where no experiment is chosen.
    """
    chosen = config.regression
    if chosen is None:
        names = sorted(path.stem for path in (context.workspace.conf / "regression").glob("*.yaml"))
        raise ConfigError(f"which experiment? regression=NAME (valid: {', '.join(names)})")
    data = load_data(config, context.workspace) if chosen.reads_table else None
    folder = context.out / FOLDER
    with (
        context.workspace.output(folder) as fresh,
        context.workspace.output(context.out / TIMING) as timing,
        context.track(
            config,
            data=[data_input(data)] if data else [],
            dependencies=[table_folder(config, context.workspace)] if data else [],
            journal=fresh,
        ) as run,
    ):
        lineage = context.lineage(
            parameters(config, context.workspace.root, context.stage),
            {data.name: data.digest} if data else {},
        )
        write_lineage(fresh, lineage)
        write_lineage(timing, lineage)
        job = Job(fresh, timing, lineage, data)
        found = experiment(chosen.method)(config, context, job, run)
        about = {"experiment": context.experiment, "name": chosen.name, "method": chosen.method}
        shown = asdict(found)
        write_json(timing / SUMMARY, shown.pop("timing"))
        write_json(fresh / SUMMARY, {**about, **shown})
        numbers = {k: v for k, v in found.metrics.items() if isinstance(v, int | float)}
        run.log_metrics(numbers)
        run.note(f"**{context.experiment}**: {found.sentence}")
        run.log_artifacts([fresh])
        run.log_artifacts([timing], TIMING)
    write_json(context.out / "metrics" / f"{FOLDER}.json", dict(found.metrics))
    where = context.workspace.relative(folder)
    log.info("%s: %s -> %s", context.experiment, found.sentence, where)
    return folder


def experiment(method: str) -> Experiment:
    """Return the function of a method; its libraries are imported now, not earlier."""
    run: Experiment = importlib.import_module(f"roshap.stages.regress_{method}").run
    return run
