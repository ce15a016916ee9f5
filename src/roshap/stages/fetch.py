"""Stage ``fetch``: from a source to the canonical table of a data set."""

from __future__ import annotations

from dataclasses import replace

from roshap.stages.config import RootConfig
from roshap.stages.context import StageContext
from roshap.stages.data import data_input, fetch_data, table_folder


def fetch(config: RootConfig, context: StageContext) -> None:
    """Fetch the data set, check it, and write ``table.parquet`` with its digest."""
    folder = table_folder(config, context.workspace)
    data = fetch_data(config, context.workspace, folder)
    context = replace(context, experiment=data.name)  # the model has no part in it
    with context.track(config, data=[data_input(data)], journal=folder) as run:
        run.log_metrics({"n": data.n, "p": data.p})
        run.log_artifacts([folder / "table.json"])
    print(
        f"{data.name}: {data.n} rows x {data.p} features, {data.task}, target {data.target!r}, "
        f"digest {data.digest[:12]} in {context.workspace.relative(folder)}"
    )
    if reason := data.source.get("task_inferred"):
        print(f"{data.name}: {data.task} because {reason}; dataset.task=... overrides it")
