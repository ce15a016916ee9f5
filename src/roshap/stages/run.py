"""``roshap run``: one experiment by hand, from a table to a ranking and a report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd

from roshap.attribution.ranking import read_ranking
from roshap.stages.attribute import attribute
from roshap.stages.config import RootConfig
from roshap.stages.context import StageContext
from roshap.stages.rank import rank, read_certainty
from roshap.stages.report import PAGE, render
from roshap.stages.select import select
from roshap.tracking import read_record


def run(config: RootConfig, context: StageContext) -> None:
    """Attribute, rank and report one experiment; print the ranking and where things are."""
    workspace = context.workspace
    attribute(config, replace(context, stage="attribute"))
    ranked = rank(config, replace(context, stage="rank"))
    if config.selection.enabled:
        select(config, replace(context, stage="select"))
    page = context.out / PAGE
    here = {context.experiment: context.out}
    selections = here if config.selection.enabled else {}
    page.write_text(render(f"Experiment {context.experiment}", here, selections=selections))
    table = read_ranking(ranked)
    print(as_text(table.head(config.rank.print)))
    if len(table) > config.rank.print:
        rest = len(table) - config.rank.print
        print(f"... {rest} more in {workspace.shown(ranked / 'ranking.csv')}")
    for place, line in enumerate(read_certainty(ranked)):
        print(f"{'certainty' if place == 0 else '':<11} {line}")
    print(f"report      {workspace.shown(page)}")
    if config.tracking.enabled:
        record = read_record(workspace.root, "rank", context.experiment)
        if record is not None:
            print(f"MLflow run  {record['run_id']} in experiment 'rank' (roshap ui shows it)")


def as_text(table: pd.DataFrame) -> str:
    """Return the leading columns of a ranking as aligned text."""
    table = table.assign(
        interval=_between(table, "roshap_low", "roshap_high", "{:.4g}"),
        places=_between(table, "rank_low", "rank_high", "{:.0f}"),
    )
    columns = ["rank", "feature", "roshap", "interval", "places", "p_top_k", "p0", "distribution"]
    # pandas aligns text to the right; names read better from the left
    width = max(len("feature"), *table["feature"].str.len())
    formats: dict[str, Callable[..., str]] = {
        "feature": f"{{:<{width}}}".format,
        "p0": "{:.1%}".format,
        "p_top_k": lambda value: "" if pd.isna(value) else f"{value:.2f}",
        "roshap": lambda value: "no spread" if pd.isna(value) else f"{value:.4g}",
    }
    shown = table[columns].rename(columns={"feature": f"{'feature':<{width}}"})
    formats[f"{'feature':<{width}}"] = formats.pop("feature")
    return str(shown.to_string(index=False, formatters=formats))


def _between(table: pd.DataFrame, low: str, high: str, form: str) -> list[str]:
    """Write intervals; nothing where there is none."""
    ends = zip(table[low].tolist(), table[high].tolist(), strict=True)
    return ["" if pd.isna(a) else f"{form.format(a)} - {form.format(b)}" for a, b in ends]
