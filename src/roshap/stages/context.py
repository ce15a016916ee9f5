"""What a stage needs besides its configuration: where it runs, its name, what it logs."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roshap.stages.workspace import Workspace, open_output
from roshap.tracking import (
    DataInput,
    StageRun,
    library_versions,
    path_md5,
    provenance,
    track,
    without_root,
)

if TYPE_CHECKING:
    from roshap.compute import Executor
    from roshap.stages.config import RootConfig

#: Parts of the configuration that say how something happens and never change a result.
MEANS = ("compute", "tracking", "fetch", "report", "objective")
SHARED_GROUPS = {"dataset", "experiment"}
#: Stages that read nothing but these groups.
OWN_GROUPS: Mapping[str, set[str]] = {"regress": {"regression", *SHARED_GROUPS}}


@dataclass(frozen=True)
class StageContext:
    """One execution of a stage.

    Attributes
    ----------
    stage
        The stage's name.
    experiment
        The experiment's name: MLflow's run name and the heading in reports.
    study
        The study that the command belongs to; ``"by hand"`` outside DVC.
    out
        Absolute folder below which the stage writes.
    command
        The command that makes the result again, without paths of this machine.
    logged
        The last value of each metric that was logged, for sweeps with an ``objective``.
    """

    stage: str
    experiment: str
    study: str
    out: Path
    command: str
    workspace: Workspace
    logged: dict[str, float] = field(default_factory=dict, compare=False)

    @classmethod
    def make(
        cls, stage: str, config: RootConfig, workspace: Workspace, overrides: Sequence[str]
    ) -> StageContext:
        """Build the context of one job from its configuration."""
        words = (without_root(word, workspace.root) for word in overrides if _matters(word))
        return cls(
            stage=stage,
            experiment=config.experiment or _experiment_name(stage, config),
            study=_study(workspace) if "DVC_ROOT" in os.environ else "by hand",
            out=Path(config.out).resolve(),
            command=shlex.join(["roshap", stage, *words]),
            workspace=workspace,
        )

    def executor(self, config: RootConfig) -> Executor:
        """Return what ``conf/compute`` says of where replicates run."""
        from roshap.compute import Executor

        return Executor(
            backend=config.compute.backend,
            workers=config.compute.workers,
            threads=config.compute.threads,
            scratch=self.workspace.cache / "tmp",
            address=config.compute.address,
        )

    @contextlib.contextmanager
    def track(
        self,
        config: RootConfig,
        *,
        data: Iterable[DataInput] = (),
        dependencies: Iterable[Path] = (),
        journal: Path | None = None,
    ) -> Iterator[StageRun]:
        """Record the block as one MLflow run of this stage.

        ``journal`` is the folder that gets the journal; by default the output that is being
        written.
        """
        paths = {self.workspace.relative(path): path for path in dependencies if path.exists()}
        with track(
            config.tracking,
            stage=self.stage,
            experiment=self.experiment,
            study=self.study,
            params=parameters(config, self.workspace.root, self.stage),
            command=self.command,
            root=self.workspace.root,
            out=self.out,
            data=data,
            dependencies={name: path_md5(path) for name, path in paths.items()},
            journal=journal or open_output(),
            store_root=self.workspace.store_root,
        ) as run:
            yield run
        kept = run.recorder.journal
        for name in kept.metrics:
            if (value := kept.last(name)) is not None:
                self.logged[name] = value

    def lineage(self, params: Mapping[str, Any], digests: Mapping[str, str]) -> dict[str, str]:
        """Return the block for figures and tables; the same in every execution."""
        return provenance(
            stage=self.stage,
            experiment=self.experiment,
            command=self.command,
            params=params,
            data_digests=digests,
            versions=library_versions(),
        )


def parameters(config: RootConfig, root: Path, stage: str = "") -> dict[str, Any]:
    """Return what decides a result: the configuration without the means and the place.

    The groups in :data:`OWN_GROUPS` belong to one stage: that stage has no parameters besides
    them, the others do not have them at all.
    """
    values = config.model_dump(mode="json", exclude={*MEANS, "out"})
    own = OWN_GROUPS.get(stage)
    others = set().union(*OWN_GROUPS.values()) - SHARED_GROUPS
    values = {k: v for k, v in values.items() if (k in own if own else k not in others)}
    if stage == "regress" and config.regression and not config.regression.reads_table:
        del values["dataset"]
        return values
    if path := values["dataset"].get("path"):
        values["dataset"]["path"] = without_root(str(Path(path).resolve()), root)
    values["dataset"].pop("description", None)
    return values


def _matters(override: str) -> bool:
    """Tell whether an override belongs in the command that makes the same result again."""
    return override.lstrip("+~").partition("=")[0].partition(".")[0] not in MEANS


def _experiment_name(stage: str, config: RootConfig) -> str:
    """Return the name of an experiment that has been given none."""
    if stage == "regress" and config.regression is not None:
        name = config.regression.name
        return f"{dataset_name(config)}-{name}" if config.regression.reads_table else name
    return f"{dataset_name(config)}-{config.model.name}"


def dataset_name(config: RootConfig) -> str:
    """Return the data set's name; a person's own file is called by its stem."""
    path = config.dataset.path
    return Path(path).stem if path else config.dataset.name


def _study(workspace: Workspace) -> str:
    import yaml

    if not workspace.params.is_file():
        return "by hand"
    return str(yaml.safe_load(workspace.params.read_text()).get("study", "by hand"))
