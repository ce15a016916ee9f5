"""Top-k selection: the same splits, the same model, the same test rows for every ranker."""

from __future__ import annotations

import contextlib
import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pandas as pd

from roshap.attribution.bootstrap import (
    BootstrapSettings,
    bootstrap_attributions,
    design_matrix,
    key_parts,
)
from roshap.attribution.ranking import rank_attributions
from roshap.baselines import RANKERS, order
from roshap.compute import CheckpointStore, Executor, Progress, code_digest, scratch_folder
from roshap.datasets import Dataset
from roshap.errors import ConfigError
from roshap.models import Task
from roshap.selection.metrics import metrics_of
from roshap.selection.single_runs import rank_single_runs
from roshap.selection.splits import Split, make_splits
from roshap.selection.stability import set_stability
from roshap.selection.workers import Answer, Refit, RefitInputs, refit, stream_seed

ROSHAP = "roshap"
ALL_FEATURES = "all features"
#: The paper's rankers in its order, then ours.
ALL_RANKERS = ("shap", "gain", "lime", "ig", ROSHAP, "permutation")
#: Places of each ranking that are kept, where ``upto`` asks for fewer.
KEPT_PLACES = 50
_REFIT_CODE = ("roshap.selection.workers", "roshap.selection.metrics", "roshap.models")


@dataclass(frozen=True)
class SelectionSettings:
    """How rankers are compared.

    Parameters
    ----------
    rankers
        Names out of :data:`ALL_RANKERS`.
    upto
        Refits use the first 1, 2, ..., ``upto`` features.
    runs
        RoSHAP's bootstrap runs on each training set.
    test_size, folds
        See :func:`roshap.selection.splits.make_splits`.
    aside
        Share of the training rows that the single-run rankers' one model does not see.
    options
        Options of single rankers, by name.

    Raises
    ------
    ConfigError
        Where a value is not valid.
    """

    rankers: tuple[str, ...] = ALL_RANKERS
    upto: int = 10
    runs: int = 100
    test_size: float = 0.3
    folds: int = 5
    aside: float = 0.25
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = [name for name in self.rankers if name not in ALL_RANKERS]
        if unknown:
            raise ConfigError(
                f"unknown ranker {unknown[0]!r} in selection.rankers "
                f"(valid: {', '.join(ALL_RANKERS)})"
            )
        if not self.rankers:
            raise ConfigError("selection.rankers is empty: nothing to compare")
        if self.upto < 1:
            raise ConfigError(f"selection.upto={self.upto}: must be 1 or more")
        if not 0 < self.aside < 1:
            raise ConfigError(f"selection.aside={self.aside}: must be between 0 and 1")


@dataclass(frozen=True)
class Selection:
    """What came out of it.

    Attributes
    ----------
    task, p
        Of the data set.
    splits
        The splits that all rankers shared.
    rankers
        The rankers that could rank here, in the order of :data:`ALL_RANKERS`.
    rankings
        ``split, ranker, place, feature, score``: the leading places of every ranking.
    metrics
        ``evaluation, split, ranker, k`` and a column per metric; the model of all features has
        the ranker :data:`ALL_FEATURES` and ``k = p``.
    stability
        ``ranker, k`` and the measures of :class:`~roshap.selection.stability.SetStability` over
        the folds; empty without a cross-validation.
    details
        ``split, ranker, detail, value``: measured properties of rankings (LIME's instability).
    notes, left_out
        How each ranker worked, and why one is left out.
    refits
        Models fitted, and models that would have been fitted without sharing equal ones.
    seconds
        Core-seconds of each ranker over all splits, and wall seconds of ``refits``.
    """

    task: Task
    p: int
    splits: tuple[Split, ...]
    rankers: tuple[str, ...]
    rankings: pd.DataFrame
    metrics: pd.DataFrame
    stability: pd.DataFrame
    details: pd.DataFrame
    notes: Mapping[str, tuple[str, ...]]
    left_out: Mapping[str, str]
    refits: tuple[int, int]
    seconds: Mapping[str, float]


MakeProgress = Callable[[str], Progress]


def evaluate(
    data: Dataset,
    model: Any,
    *,
    settings: SelectionSettings | None = None,
    bootstrap: BootstrapSettings | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    store: Path | None = None,
    label: str | None = None,
    progress: MakeProgress | None = None,
) -> Selection:
    """Compare rankers by the models that their leading features make.

    For every split each ranker ranks the training rows, and for every k the same model with the
    same parameters is fitted to the training rows with the k leading features alone and measured
    on the test rows. Equal sets of features give equal models (columns keep the table's order),
    so each set is fitted once per split.

    Parameters
    ----------
    data
        The whole table; published test rows are the held-out split's.
    model
        Unfitted estimator with a fixed seed.
    settings, bootstrap
        How rankers are compared, and how RoSHAP draws and explains.
    seed
        Of the study; splits and rankings depend on it, never on the executor.
    executor, store, label
        As in :func:`~roshap.attribution.bootstrap.bootstrap_attributions`: finished runs and
        refits found in the store are not repeated.
    progress
        Makes a progress for a part of the work, given its name; silent by default.

    Returns
    -------
    Selection
    """
    study = _Study(
        data=data,
        model=model,
        settings=settings or SelectionSettings(),
        bootstrap=bootstrap or BootstrapSettings(),
        seed=seed,
        executor=executor or Executor(),
        store=store,
        label=label or data.name,
        progress=progress or (lambda _: Progress(quiet=True)),
    )
    return study.run()


@dataclass(frozen=True)
class _Study:
    data: Dataset
    model: Any
    settings: SelectionSettings
    bootstrap: BootstrapSettings
    seed: int
    executor: Executor
    store: Path | None
    label: str
    progress: MakeProgress

    def run(self) -> Selection:
        """Rank, refit, and put the tables together."""
        chosen = self.settings
        splits = make_splits(
            self.data, test_size=chosen.test_size, folds=chosen.folds, seed=self.seed
        )
        seconds: dict[str, float] = defaultdict(float)
        scores, answers = self._single_run_rankings(splits, seconds)
        if ROSHAP in chosen.rankers:
            scores[ROSHAP] = [self._roshap(split, i, seconds) for i, split in enumerate(splits)]
        orders = {
            name: [order(one, self.data.features) for one in scores[name]]
            for name in ALL_RANKERS
            if name in scores
        }
        started = monotonic()
        metrics, counts = self._refits(splits, orders)
        seconds["refits"] = monotonic() - started
        names = [split.name for split in splits]
        return Selection(
            task=self.data.task,
            p=self.data.p,
            splits=tuple(splits),
            rankers=tuple(orders),
            rankings=self._rankings(names, orders, scores),
            metrics=metrics,
            stability=self._stability(splits, orders),
            details=_details(names, answers),
            notes=self._notes(answers),
            left_out=_left_out(answers),
            refits=counts,
            seconds=dict(seconds),
        )

    @property
    def upto(self) -> int:
        """The largest k: no more than there are features."""
        return min(self.settings.upto, self.data.p)

    def _single_run_rankings(
        self, splits: Sequence[Split], seconds: dict[str, float]
    ) -> tuple[dict[str, list[np.ndarray]], dict[str, list[Answer]]]:
        """Return each single-run ranker's (p,) scores per split, and all that it said."""
        answers = rank_single_runs(
            self.data,
            self.model,
            {split.name: split.train for split in splits},
            [name for name in RANKERS if name in self.settings.rankers],
            compute=self._compute,
            options=self.settings.options,
            aside=self.settings.aside,
            seed=self.seed,
            explainer=self.bootstrap.explainer,
            k=self.upto,
        )
        scores = {}
        for name, of_one in answers.items():
            seconds[name] = sum(answer.seconds for answer in of_one)
            ranked = [answer.ranked for answer in of_one]
            # a ranker that fails on one split would be compared on others than the rest
            if all(one is not None for one in ranked):
                scores[name] = [one.scores for one in ranked if one is not None]
        return scores, answers

    def _compute(self, what: str, function: Any, inputs: Any, count: int) -> list[Any]:
        """Return the results of all tasks in their order."""
        results: list[Any] = [None] * count
        with self.progress(f"{self.label}: {what}") as progress:
            progress.start(count)
            for task, result in self.executor.run(function, inputs, range(count)):
                results[task] = result
                progress.advance()
        return results

    def _roshap(self, split: Split, number: int, seconds: dict[str, float]) -> np.ndarray:
        """Return RoSHAP's (p,) scores from a bootstrap of the split's training rows."""
        started = monotonic()
        result = bootstrap_attributions(
            self.data.take(split.train),
            self.model,
            runs=self.settings.runs,
            seed=stream_seed(self.seed, number),
            # summaries of rows are for reading; where the runs may be shared with the attribute
            # stage, its settings must be kept
            settings=self.bootstrap
            if split.published
            else replace(self.bootstrap, row_level=False),
            executor=self.executor,
            store=self.store,
            label=f"{self.label} select {split.name}",
            progress=self.progress(f"{self.label}: RoSHAP, {split.name}"),
        )
        seconds[ROSHAP] += (monotonic() - started) * self.executor.workers
        table = rank_attributions(result).set_index("feature")
        # by place: a deterministic feature has no score and yet a place
        return -table["rank"].reindex(list(self.data.features)).to_numpy(dtype=np.float64)

    def _refits(
        self, splits: Sequence[Split], orders: Mapping[str, Sequence[np.ndarray]]
    ) -> tuple[pd.DataFrame, tuple[int, int]]:
        """Return the metrics of every split, ranker and k, and the numbers of models."""
        wanted = [
            (number, name, k, Refit(number, tuple(sorted(of_ranker[number][:k].tolist()))))
            for name, of_ranker in orders.items()
            for number in range(len(splits))
            for k in range(1, self.upto + 1)
        ]
        everything = tuple(range(self.data.p))
        wanted += [(i, ALL_FEATURES, self.data.p, Refit(i, everything)) for i in range(len(splits))]
        # the longest first, so that no core waits for the last one
        unique = sorted(
            {one for *_, one in wanted}, key=lambda o: (-len(o.columns), o.split, o.columns)
        )
        found = dict(zip(unique, self._measured(splits, unique), strict=True))
        names = [metric.name for metric in metrics_of(self.data.task)]
        rows = [
            {
                "evaluation": splits[number].evaluation,
                "split": splits[number].name,
                "ranker": name,
                "k": k,
                **{metric: found[one][metric] for metric in names},
            }
            for number, name, k, one in wanted
        ]
        return pd.DataFrame(rows), (len(unique), len(wanted))

    def _measured(self, splits: Sequence[Split], unique: Sequence[Refit]) -> list[dict[str, float]]:
        """Fit and measure each refit once; those in the store are not repeated."""
        inputs = RefitInputs(
            X=design_matrix(self.data),
            y=np.asarray(self.data.y),
            weights=self.data.weights,
            task=self.data.task,
            model=self.model,
            splits=tuple((split.train, split.test) for split in splits),
            refits=tuple(unique),
        )
        with contextlib.ExitStack() as stack:
            folder = self.store or stack.enter_context(scratch_folder(self.executor.scratch))
            store = CheckpointStore(folder, self._refit_key(inputs), f"{self.label} refits")
            progress = stack.enter_context(self.progress(f"{self.label}: refits"))
            stack.enter_context(store.open())
            done = store.done(say=progress.say)
            missing = [index for index in range(len(unique)) if index not in done]
            progress.start(len(unique), len(unique) - len(missing))
            for index, arrays in self.executor.run(refit, inputs, missing):
                store.write(index, arrays)
                progress.advance()
            measured = []
            for index in range(len(unique)):
                with store.read(index) as arrays:
                    measured.append({name: float(arrays[name]) for name in arrays.files})
        return measured

    def _refit_key(self, inputs: RefitInputs) -> dict[str, str]:
        """Return all that the refits depend on, by name."""
        parts = key_parts(self.data, self.model, seed=self.seed, settings=self.bootstrap)
        kept = {k: v for k, v in parts.items() if not k.startswith("settings.") and k != "seed"}
        digest = hashlib.sha256(repr(inputs.refits).encode())
        for train, test in inputs.splits:
            digest.update(train.tobytes() + b"/" + test.tobytes())
        return {**kept, "code": code_digest(*_REFIT_CODE), "refits": digest.hexdigest()}

    def _rankings(
        self,
        names: Sequence[str],
        orders: Mapping[str, Sequence[np.ndarray]],
        scores: Mapping[str, Sequence[np.ndarray]],
    ) -> pd.DataFrame:
        features = np.asarray(self.data.features, dtype=object)
        parts = []
        for ranker, of_splits in orders.items():
            for split, columns, of_split in zip(names, of_splits, scores[ranker], strict=True):
                leading = columns[: max(self.upto, KEPT_PLACES)]
                parts.append(
                    pd.DataFrame(
                        {
                            "split": split,
                            "ranker": ranker,
                            "place": np.arange(1, len(leading) + 1),
                            "feature": features[leading],
                            # RoSHAP's scores are in the ranking of the rank stage
                            "score": np.nan if ranker == ROSHAP else of_split[leading],
                        }
                    )
                )
        return pd.concat(parts, ignore_index=True).astype(
            dict.fromkeys(("split", "ranker", "feature"), "str")
        )

    def _stability(
        self, splits: Sequence[Split], orders: Mapping[str, Sequence[np.ndarray]]
    ) -> pd.DataFrame:
        """Return how much the selected sets differ between the folds."""
        folds = [number for number, split in enumerate(splits) if split.evaluation == "cv"]
        rows = []
        for ranker, of_splits in orders.items() if len(folds) > 1 else ():
            for k in range(1, self.upto + 1):
                sets = [of_splits[number][:k].tolist() for number in folds]
                found = set_stability(sets, self.data.p)
                rows.append({"ranker": ranker, "k": k, **vars(found)})
        columns = ["ranker", "k", "jaccard", "kuncheva", "nogueira", "low", "high"]
        return pd.DataFrame(rows, columns=columns)

    def _notes(self, answers: Mapping[str, Sequence[Answer]]) -> dict[str, tuple[str, ...]]:
        notes: dict[str, tuple[str, ...]] = {}
        for name, of_splits in answers.items():
            said = [note for one in of_splits if one.ranked for note in one.ranked.notes]
            warned = [line for one in of_splits for line in one.warnings]
            # of the first split for the sizes that differ between splits by a row
            first = of_splits[0].ranked.notes if of_splits[0].ranked else ()
            notes[name] = tuple(dict.fromkeys([*(first or said), *warned]))
        if ROSHAP in self.settings.rankers:
            notes[ROSHAP] = (f"{self.settings.runs} runs on the training rows of each split",)
        return notes


def _left_out(answers: Mapping[str, Sequence[Answer]]) -> dict[str, str]:
    """Return the rankers that could not rank on some split, each with its first reason."""
    reasons = {
        name: [answer.unfit for answer in of_splits if answer.unfit is not None]
        for name, of_splits in answers.items()
    }
    return {name: found[0] for name, found in reasons.items() if found}


def _details(names: Sequence[str], answers: Mapping[str, Sequence[Answer]]) -> pd.DataFrame:
    rows = [
        {"split": split, "ranker": ranker, "detail": detail, "value": value}
        for ranker, of_splits in answers.items()
        for split, answer in zip(names, of_splits, strict=True)
        if answer.ranked is not None
        for detail, value in answer.ranked.details.items()
    ]
    return pd.DataFrame(rows, columns=["split", "ranker", "detail", "value"])
