"""A ranking in one call, from a notebook: ``rank_features(model, X, y)``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from roshap import plots
from roshap.attribution.attributions import Attributions
from roshap.attribution.bootstrap import BootstrapSettings, bootstrap_attributions
from roshap.attribution.groups import DEFAULT_THRESHOLD
from roshap.attribution.randomness import Shares, shares
from roshap.attribution.ranking import GLOSSARY, rank_attributions, rank_groups
from roshap.attribution.score import score
from roshap.attribution.stopping import Decision, StopRule, decision_of, judge
from roshap.compute import Executor, Progress
from roshap.datasets import from_frame
from roshap.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = {"type": "roshap.ranking", "version": 1}


@dataclass(frozen=True)
class Ranking:
    """A robust ranking with its certainty.

    Attributes
    ----------
    attributions
        What it is made of.
    k
        Size of the top set that is asked about.
    rule
        What has to be settled.
    """

    attributions: Attributions
    k: int
    rule: StopRule

    @property
    def table(self) -> pd.DataFrame:
        """The ranking, best feature first (columns: :attr:`glossary`)."""
        return rank_attributions(self.attributions, k=self.k)

    @property
    def glossary(self) -> dict[str, str]:
        """What each column of the table says."""
        return dict(GLOSSARY)

    @property
    def groups(self) -> pd.DataFrame:
        """The ranking of collinear groups among the features that are in none."""
        return rank_groups(self.attributions, k=self.k)

    @property
    def decision(self) -> Decision | None:
        """Whether the k best are settled; None below 70 runs or where nothing is left out."""
        found = self.attributions
        return decision_of(found.meta) or judge(found.scores, found.features, self.rule)

    @property
    def claim(self) -> str:
        """What can be claimed of the k best, in words."""
        found = self.decision
        if found is None:
            return f"{self.attributions.runs} runs: too few to call a top set settled, or none is"
        return "\n".join(found.lines())

    @property
    def shares(self) -> Shares:
        """Parts of each feature's spread that are the data's and the model seed's.

        Raises
        ------
        DataError
            Without ``randomness``.
        """
        second = self.attributions.second_seed
        if second is None:
            raise DataError("no runs of a second model seed: rank_features(..., randomness=30)")
        return shares(self.attributions.scores[: len(second)], second.mean(axis=2))

    def plot_ranking(self, *, top: int = 20) -> Figure:
        """Draw the scores and their factors."""
        return plots.ranking(self.table, top=top, units=self.attributions.space)

    def plot_intervals(self, *, top: int = 20) -> Figure:
        """Draw scores and ranks with their 95 % intervals."""
        return plots.intervals(self.table, top=top, units=self.attributions.space)

    def plot_top_k(self) -> Figure:
        """Draw the probability of being among the k best, as k grows."""
        found = self.attributions
        return plots.top_k(found.scores, found.features, k=self.k, seed=int(found.meta["seed"]))

    def plot_ties(self, *, top: int = 20) -> Figure:
        """Draw which features cannot be told apart."""
        found = self.attributions
        return plots.ties(found.scores, found.features, decision=self.decision, top=top)

    def plot_settling(self) -> Figure:
        """Draw the weakest pair's statistic as runs are added."""
        found = self.attributions
        return plots.settling(found.scores, found.features, self.rule, self.decision)

    def plot_variance_shares(self, *, top: int = 20) -> Figure:
        """Draw how much of the spread is the data's and how much the model seed's."""
        found = self.shares
        lead = np.argsort(-score(self.attributions.scores).roshap, kind="stable")[:10]
        return plots.variance_shares(
            self.table, top=top, pooled=found.pooled(lead), draws=found.draws
        )

    def plot_distributions(self, *, top: int = 15) -> Figure:
        """Draw the leading features' attributions over the runs."""
        found = self.attributions
        names = self.table["feature"].head(top).tolist()
        return plots.ridgelines(
            found.scores, found.features, names, units=found.space, aggregate=found.aggregate
        )

    def to_json(self, path: Path | str | None = None) -> str:
        """Return everything as JSON (missing values as null); written to ``path`` where given."""
        decision = self.decision
        about = {
            "format": FORMAT,
            "k": self.k,
            "runs": self.attributions.runs,
            "explainer": self.attributions.explainer,
            "space": self.attributions.space,
            "claim": self.claim,
            "decision": None if decision is None else decision.to_dict(),
            "meta": dict(self.attributions.meta),
            "columns": self.glossary,
            "table": json.loads(self.table.to_json(orient="records")),
        }
        text = json.dumps(about, indent=1, ensure_ascii=False)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text


def rank_features(
    model: Any,
    X: Any,
    y: Any,
    *,
    k: int | Literal["auto"] = 10,
    runs: int | Literal["settled"] = 100,
    sample_weight: Any = None,
    groups: Any = None,
    task: Any = None,
    categorical: tuple[str, ...] = (),
    groups_threshold: float | None = DEFAULT_THRESHOLD,
    randomness: int = 0,
    settings: BootstrapSettings | None = None,
    rule: StopRule | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    store: Path | str | None = None,
    verbose: bool = False,
) -> Ranking:
    """Rank the features of a model by their RoSHAP score, and say how sure the ranking is.

    Parameters
    ----------
    model
        Unfitted scikit-learn estimator with a fixed seed.
    X, y
        Table (n, p) and target (n,).
    k
        Size of the top set; with ``"auto"`` the largest settled size from 5 to 15.
    runs
        Bootstrap samples, or ``"settled"``: until the k best are settled, at most 500.
    sample_weight, groups
        (n,) weights, and groups of rows that stay together.
    task, categorical
        See :func:`roshap.datasets.from_frame`; the task is inferred from y by default.
    groups_threshold
        Rank correlation from which features are scored as a group too; None for no groups.
    randomness
        First runs that are fitted again with a second model seed; 0 for none.
    settings
        How runs are drawn and explained.
    rule
        Tolerance, error and looks of "settled"; its k is replaced by ``k``.
    seed
        Of the samples.
    n_jobs
        Processes; 0 is all cores. Never changes the result.
    store
        Folder that keeps finished runs: the next call with more runs goes on.
    verbose
        Say on standard error how far it is.

    Returns
    -------
    Ranking
    """
    from dataclasses import replace

    rule = replace(rule or StopRule(), k=k)
    found = bootstrap_attributions(
        from_frame(X, y, task=task, categorical=categorical, groups=groups, weights=sample_weight),
        model,
        runs=rule.looks[-1] if runs == "settled" else runs,
        seed=seed,
        settings=settings,
        executor=Executor(workers=n_jobs),
        store=None if store is None else Path(store),
        progress=Progress("rank_features", quiet=not verbose),
        stop=rule if runs == "settled" else None,
        randomness=randomness,
        groups_threshold=groups_threshold,
    )
    decision = decision_of(found.meta)
    size = k if k != "auto" else decision.k if decision is not None else rule.k_range[0]
    return Ranking(found, size, rule)
