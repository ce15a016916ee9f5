"""Stage ``rank``: score the features, judge their distributions, draw the figures."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from roshap.attribution.attributions import Attributions
from roshap.attribution.distribution import Verdict, verdict
from roshap.attribution.randomness import shares
from roshap.attribution.ranking import rank_attributions, rank_classes, rank_groups, write_ranking
from roshap.attribution.score import score
from roshap.attribution.stopping import Decision, StopRule, decision_of, judge
from roshap.compute.files import write_bytes, write_json
from roshap.errors import DataError
from roshap.plots import (
    histograms,
    intervals,
    ranking,
    ridgelines,
    save_figure,
    settling,
    single_rounds,
    ties,
    top_k,
    variance_shares,
)
from roshap.plots.style import shorten
from roshap.stages import attribute as attribute_stage
from roshap.stages.config import RootConfig
from roshap.stages.context import StageContext
from roshap.tracking import StageRun, write_lineage

FOLDER = "rank"
SUMMARY = "summary.json"
NOTE_ROWS = 20

#: Leading features over which the data's share of the spread is pooled.
POOLED = 10


def rank(config: RootConfig, context: StageContext) -> Path:
    """Rank the features of ``<out>/attribute``, write ``<out>/rank``; return it."""
    source = context.out / attribute_stage.FOLDER
    about = read_about(source, context)
    attributions = Attributions.load(source)
    sure = assess(config, attributions)
    table = rank_attributions(attributions, k=sure.k)
    found = verdict(table)
    folder = context.out / FOLDER
    with (
        context.workspace.output(folder) as fresh,
        context.track(config, dependencies=[source]) as run,
    ):
        write_ranking(table, fresh)
        if attributions.classes:
            write_ranking(rank_classes(attributions, k=sure.k), fresh, name="classes")
        if attributions.groups is not None:
            write_ranking(rank_groups(attributions, k=sure.k), fresh, name="groups")
        lineage = context.lineage(
            {
                "rank": config.rank.model_dump(),
                "selection": {"k": config.selection.k},
                "attribute": _parameters(source),
            },
            {about["data"]["name"]: about["data"]["digest"]},
        )
        write_lineage(fresh, lineage)
        _draw(fresh / "figures", config, about, attributions, table, sure, lineage)
        metrics = {**summarise(table, found), **sure.metrics()}
        summary = {**about, "verdict": found.sentence, "certainty": sure.to_dict()}
        write_json(fresh / SUMMARY, {**summary, "metrics": metrics})
        _log(run, about, table, found, sure, metrics, fresh)
    write_json(context.out / "metrics" / f"{FOLDER}.json", metrics)
    write_bytes(context.out / "plots" / f"{FOLDER}.csv", _for_dvc_plots(table))
    return folder


def _for_dvc_plots(table: pd.DataFrame) -> bytes:
    """Return the leading features as CSV, for ``dvc plots diff`` to lay over another revision's."""
    columns = ["rank", "feature", "roshap", "p0", "strength", "stability"]
    text = table.loc[: NOTE_ROWS - 1, columns].to_csv(index=False, lineterminator="\n")
    return text.encode()


@dataclass(frozen=True)
class Assessment:
    """How sure the top of a ranking is.

    Attributes
    ----------
    k
        Size of the top set.
    rule
        What was to be settled.
    decision
        Whether it is; None where there are too few runs to say.
    data_share
        Mean share of the data in the spread of the leading features, with its standard error;
        None without runs of a second model seed.
    note
        Where there is no decision: why.
    """

    k: int
    rule: StopRule
    decision: Decision | None
    data_share: tuple[float, float] | None
    note: str

    def lines(self) -> list[str]:
        """Return what a person should read, a line each."""
        lines = self.decision.lines() if self.decision else [self.note]
        if self.data_share is not None and math.isfinite(self.data_share[0]):
            share, error = self.data_share
            lines.append(
                f"spread of the {POOLED} leading features: {share:.0%} from the data drawn, the "
                f"rest from the model's seed (standard error {error:.0%})"
            )
        return lines

    def metrics(self) -> dict[str, Any]:
        """Return the numbers that are compared between experiments."""
        found = self.decision
        last = found.looks[-1] if found else None
        share = self.data_share[0] if self.data_share else math.nan
        return {
            "settled": None if found is None else int(found.settled),
            "settled_k": None if found is None else found.k,
            "settled_t_min": None if last is None else last.t_min,
            "data_share": share if math.isfinite(share) else None,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return {
            "k": self.k,
            "decision": None if self.decision is None else self.decision.to_dict(),
            "lines": self.lines(),
        }


def assess(config: RootConfig, attributions: Attributions) -> Assessment:
    """Say how sure the top of the ranking is.

    A bootstrap that its stop rule ended has decided already; any other number of runs is looked at
    once.
    """
    rule = attribute_stage.stop_rule(config)
    scores, features = attributions.scores, attributions.features
    decision = decision_of(attributions.meta) or judge(scores, features, rule)
    wanted = config.selection.k
    k = wanted if wanted != "auto" else decision.k if decision else rule.k_range[0]
    lowest = rule.k_range[0] if rule.k == "auto" else rule.k
    note = (
        f"{attributions.runs} runs are too few to call a top set settled (from {rule.looks[0]} on)"
        if lowest < len(features)
        else f"k={lowest} leaves no feature out: there is nothing to settle"
    )
    share = None
    if attributions.second_seed is not None:
        draws = len(attributions.second_seed)
        found = shares(scores[:draws], attributions.second_seed.mean(axis=2))
        share = found.pooled(np.argsort(-score(scores).roshap, kind="stable")[:POOLED])
    return Assessment(k, rule, decision, share, note)


def read_about(folder: Path, context: StageContext) -> dict[str, Any]:
    """Return what the attribute stage wrote about the experiment.

    Raises
    ------
    DataError
        Where that stage has not run.
    """
    try:
        about = json.loads((folder / attribute_stage.ABOUT).read_text())
    except FileNotFoundError:
        raise DataError(
            f"no attributions in {folder}: run `roshap attribute ... out=DIR` first and give the "
            "same out=DIR, or `roshap run`, which does both"
        ) from None
    if not isinstance(about, dict):
        raise DataError(f"{folder / attribute_stage.ABOUT} does not describe an experiment")
    return about


def read_certainty(folder: Path) -> list[str]:
    """Return the lines on certainty that the stage wrote into its folder."""
    lines: list[str] = json.loads((folder / SUMMARY).read_text())["certainty"]["lines"]
    return lines


def summarise(table: pd.DataFrame, found: Verdict) -> dict[str, Any]:
    """Return the numbers that ``dvc metrics`` and MLflow compare between runs."""
    scores = table["roshap"].to_numpy(dtype=float)
    finite = scores[np.isfinite(scores)]
    top = finite[0] if len(finite) and finite[0] > 0 else np.nan
    fall = {
        f"score_{k}_of_first": float(finite[k - 1] / top) for k in (2, 5, 10) if len(finite) >= k
    }
    return {
        "top_feature": str(table["feature"].iloc[0]),
        "top_score": float(top) if np.isfinite(top) else None,
        **{name: value if np.isfinite(value) else None for name, value in fall.items()},
        "features_never_used": int((table["p0"] == 1).sum()),
        "distribution": found.shape,
    }


def _draw(
    folder: Path,
    config: RootConfig,
    about: dict[str, Any],
    attributions: Attributions,
    table: pd.DataFrame,
    sure: Assessment,
    lineage: dict[str, str],
) -> None:
    S, features, units = attributions.scores, attributions.features, attributions.space
    top = table["feature"].head(config.rank.top).tolist()
    where = f"{shorten(about['data']['name'])}, {about['model']}, {attributions.runs} runs"
    shared: Any = {"units": units, "aggregate": attributions.aggregate}
    figures = {
        "ranking": ranking(table, units=units, title=f"Features ranked by RoSHAP: {where}"),
        "distributions": ridgelines(
            S, features, top, title=f"Attributions of the leading features: {where}", **shared
        ),
        "histograms": histograms(
            S, features, top[:9], title=f"Attributions over bootstrap runs: {where}", **shared
        ),
        "single_rounds": single_rounds(
            S, features, title=f"Leading features of three single runs: {where}", **shared
        ),
        "intervals": intervals(table, units=units, title=f"How sure the ranking is: {where}"),
        "top_k": top_k(
            S,
            features,
            k=sure.k,
            seed=int(attributions.meta["seed"]),
            title=f"Probability of being among the k best: {where}",
        ),
        "ties": ties(
            S, features, decision=sure.decision, title=f"Which features are told apart: {where}"
        ),
    }
    if sure.decision is not None:
        figures["settling"] = settling(
            S, features, sure.rule, sure.decision, title=f"Are there enough runs? {where}"
        )
    if sure.data_share is not None:
        assert attributions.second_seed is not None
        figures["variance_shares"] = variance_shares(
            table,
            pooled=sure.data_share,
            draws=len(attributions.second_seed),
            title=f"Where the spread comes from: {where}",
        )
    for name, figure in figures.items():
        save_figure(figure, folder / name, {**lineage, "figure": name})


def _log(
    run: StageRun,
    about: dict[str, Any],
    table: pd.DataFrame,
    found: Verdict,
    sure: Assessment,
    metrics: dict[str, Any],
    folder: Path,
) -> None:
    run.log_metrics({k: v for k, v in metrics.items() if isinstance(v, int | float)})
    numbers = table.head(50)
    if sure.decision is not None:
        looks = [look for look in sure.decision.looks if look.t_min is not None]
        run.log_series("settling.t_min", [x.runs for x in looks], [x.t_min or 0 for x in looks])
        run.log_series("settling.wanted", [x.runs for x in looks], [x.critical for x in looks])
    for column in ("roshap", "p0", "strength", "stability", "p_top_k"):
        shown = numbers[numbers[column].notna()]
        run.log_series(f"by_rank.{column}", shown["rank"].tolist(), shown[column].tolist())
    settled = "unknown" if sure.decision is None else str(sure.decision.settled).lower()
    run.set_tags(
        {
            "top_feature": metrics["top_feature"],
            "distribution": found.shape,
            "settled": settled,
        }
    )
    head = table[["rank", "feature", "roshap", "p0", "strength", "stability"]].head(NOTE_ROWS)
    rows = [head.columns.tolist(), ["---"] * head.shape[1]]
    rows += [
        [f"{v:.4g}" if isinstance(v, float) else str(v) for v in row]
        for row in head.itertuples(index=False)
    ]
    body = "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)
    certain = "\n".join(f"- {line}" for line in sure.lines())
    run.note(f"**{about['experiment']}**: {found.sentence}\n\n{certain}\n\n{body}")
    run.log_artifacts([folder])


def _parameters(folder: Path) -> Any:
    return json.loads((folder / "lineage.json").read_text())["parameters"]
