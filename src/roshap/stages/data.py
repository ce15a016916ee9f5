"""The data set of an experiment: DVC's table, or one of its own where options differ."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from pathlib import Path

from omegaconf import OmegaConf

from roshap.datasets import Dataset, DatasetSpec, fetch, load
from roshap.errors import RoshapError
from roshap.stages.config import RootConfig
from roshap.stages.context import dataset_name
from roshap.stages.workspace import Workspace
from roshap.tracking import DataInput

log = logging.getLogger(__name__)


def table_folder(config: RootConfig, workspace: Workspace) -> Path:
    """Return the folder of the experiment's table.

    ``data/<name>`` belongs to DVC and holds what ``conf/dataset/<name>.yaml`` says. A data set
    with overridden options, or a person's own file, goes to the local state instead.
    """
    spec = config.dataset
    if spec.path is None and spec == _committed(spec.name, workspace):
        return workspace.data(spec.name)
    key = hashlib.sha256(spec.model_dump_json().encode()).hexdigest()[:12]
    return workspace.cache / "data" / f"{dataset_name(config)}-{key}"


def load_data(config: RootConfig, workspace: Workspace) -> Dataset:
    """Return the experiment's data set, fetching it where it is not there yet.

    A person's own file is read anew where it has changed. Jobs of a sweep that need the same table
    wait for the one that makes it.
    """
    folder = table_folder(config, workspace)
    with workspace.turn(folder):
        if _is_current(config, folder):
            try:
                return load(folder)
            except RoshapError as error:
                log.warning("%s; fetching it again", error)
        return fetch_data(config, workspace, folder)


def _is_current(config: RootConfig, folder: Path) -> bool:
    """Tell whether the table is there, and made from the file that a person's own path names."""
    table = folder / "table.json"
    path = config.dataset.path
    if not table.is_file() or path is None:
        return table.is_file()
    files = json.loads(table.read_text()).get("source", {}).get("files", ())
    with contextlib.suppress(OSError), Path(path).open("rb") as stream:
        now = hashlib.file_digest(stream, "sha256").hexdigest()
        return [file["sha256"] for file in files] == [now]
    return False


def fetch_data(config: RootConfig, workspace: Workspace, folder: Path) -> Dataset:
    """Read the data set from its sources and write its canonical table into ``folder``."""
    spec = config.dataset
    if spec.path is not None:
        spec = spec.model_copy(update={"name": dataset_name(config)})
    with workspace.output(folder) as fresh:
        return fetch(
            spec,
            fresh,
            mirror=Path(config.fetch.mirror) if config.fetch.mirror else None,
            cache=workspace.cache / "downloads",
        )


def data_input(data: Dataset) -> DataInput:
    """Return the data set as an input of a run."""
    return DataInput(name=data.name, digest=data.digest, source=data.source, n=data.n, p=data.p)


def _committed(name: str, workspace: Workspace) -> DatasetSpec | None:
    path = workspace.conf / "dataset" / f"{name}.yaml"
    if not path.is_file():
        return None
    return DatasetSpec.model_validate(OmegaConf.to_container(OmegaConf.load(path), resolve=True))
