"""DREM against its rivals: by epoch, and against noise, rows and features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from roshap.compute.files import write_bytes
from roshap.datasets import Dataset, check_dataset
from roshap.datasets.readers import make_regression
from roshap.errors import ConfigError
from roshap.plots import save_figure
from roshap.plots.solvers import sweep
from roshap.plots.style import shorten
from roshap.regression.drem.comparison import (
    OLS,
    Trial,
    epochs_until,
    last_epochs,
    regressor_curves,
    split,
    summarise,
)
from roshap.stages.config import RootConfig
from roshap.stages.regress import Findings, Job, ShownTable, Timing
from roshap.stages.regress_drem_config import DremConfig
from roshap.tracking import StageRun

#: Test rows that a generated repeat has besides its training rows.
TEST_ROWS = 1000
NEAR = 1.1
QUANTITIES = {
    "noise": "noise",
    "rows": "training rows",
    "features": "features",
}
TIMES = ["seconds"]


class Source:
    """Where the repeats of a study come from: the table, or more tables like it."""

    def __init__(self, config: RootConfig, data: Dataset) -> None:
        assert isinstance(config.regression, DremConfig)
        check_dataset(data, allow_nan=False, allow_categorical=False)
        self.study = config.regression
        self.name = shorten(data.name)
        self.X = data.X.to_numpy(dtype=np.float64)
        self.y = np.asarray(data.y, dtype=np.float64)
        generated = config.dataset.reader == "make_regression"
        self.options: dict[str, Any] | None = (
            dict(config.dataset.reader_options) if generated else None
        )

    def plain(self, repeat: int) -> Trial:
        """Return the table, split."""
        return split(self.X, self.y, self.study.test_share, repeat_seed(self.study, repeat))

    def changed(self, quantity: str, value: int, repeat: int) -> Trial:
        """Return a repeat in which one quantity has another value."""
        seed = repeat_seed(self.study, repeat)
        if self.options is not None:
            return self._drawn(quantity, value, seed)
        rng = np.random.default_rng([seed, value])
        X, y = self.X, self.y
        if quantity == "features":
            X = X[:, np.sort(rng.permutation(X.shape[1])[:value])]
        if quantity == "noise":
            y = y + value / 100 * y.std() * rng.normal(size=len(y))
        trial = split(X, y, self.study.test_share, seed)
        if quantity == "rows":
            rows = rng.permutation(len(trial.X))[:value]
            trial = Trial(trial.X[rows], trial.y[rows], trial.X_test, trial.y_test, seed)
        return trial

    def _drawn(self, quantity: str, value: int, seed: int) -> Trial:
        assert self.options is not None
        options = dict(self.options)
        rows = round(options["n"] * (1 - self.study.test_share))
        if quantity == "features":
            all_informative = options["informative"] == options["p"]
            options["p"] = value
            options["informative"] = (
                value if all_informative else min(options["informative"], value)
            )
        elif quantity == "noise":
            options["noise"] = float(value)
        else:
            rows = value
        drawn = {**options, "n": rows + TEST_ROWS, "seed": options["seed"] + seed}
        frame = make_regression.read({}, **drawn).frame
        X, y = frame.drop(columns="y").to_numpy(), frame["y"].to_numpy()
        return Trial(X[:rows], y[:rows], X[rows:], y[rows:], seed)

    def usable(self, quantity: str, values: Sequence[int]) -> list[int]:
        """Return the values that the data allow.

        Raises
        ------
        ConfigError
            Where there is none.
        """
        if self.options is not None:
            limits = {"rows": np.inf, "features": np.inf, "noise": np.inf}
            least = {"rows": 2 * (self.X.shape[1] + 1), "features": 1, "noise": 1}
        else:
            train = len(self.plain(0).X)
            limits = {"rows": train, "features": self.X.shape[1], "noise": np.inf}
            least = {"rows": 2 * (self.X.shape[1] + 1), "features": 1, "noise": 1}
        good = [v for v in values if least[quantity] <= v <= limits[quantity]]
        if not good:
            raise ConfigError(
                f"regression.values={list(values)}: {self.name} allows {quantity} from "
                f"{least[quantity]} to {limits[quantity]:g}"
            )
        return good


def epochs(config: RootConfig, job: Job, run: StageRun) -> Findings:
    """Test error by epoch."""
    chosen, source = _begin(config, job)
    trials = [source.plain(repeat) for repeat in range(chosen.repeats)]
    frame = _concat([regressor_curves(chosen.optimisers, trial, chosen.epochs) for trial in trials])
    write_table(frame.drop(columns=TIMES), job.folder / "tables" / "curves.csv")
    where = f"{source.name}, {len(trials[0].X)} training rows, {trials[0].weights} weights"
    medians = summarise(frame, "epoch", "mse")
    figure = sweep(
        medians.rename(columns={"optimiser": "solver"}),
        x="epoch",
        panels=panels(chosen.optimisers),
        reference=OLS,
        xlabel="epoch",
        ylabel="test MSE [units of the target, squared]",
        title=f"Test error by epoch: {where}",
    )
    _save(figure, job.folder, "epochs", job)
    ratios = summarise(frame, "epoch", "ratio")
    log_children(run, chosen.optimisers, ratios, "epoch", "ratio_to_ols")
    log_children_metrics = {
        key(name): value for name, value in epochs_until(frame, NEAR).items() if name != OLS
    }
    last = _last(ratios, "epoch")
    rows = [
        [
            name,
            _ratio(last[name]),
            _epochs(log_children_metrics[key(name)]),
            f"{_skipped(frame, name):.0%}",
        ]
        for name in chosen.optimisers
    ]
    write_table(ratios, job.folder / "tables" / "ratios.csv")
    return Findings(
        metrics=_metrics(last)
        | {f"epochs_to_{NEAR}.{name}": _finite(v) for name, v in log_children_metrics.items()},
        sentence=_sentence(f"After {chosen.epochs} epochs on {where}", last),
        facts=_facts(chosen, source, trials[0]),
        captions={
            "epochs": "Median over seeds, band from the smallest to the largest; dashed: least "
            "squares on the same rows."
        },
        tables=[
            ShownTable(
                f"Test error after {chosen.epochs} epochs, as a multiple of least squares' "
                "(median over seeds).",
                "tables/ratios.csv",
                ["Optimiser", "Error / OLS", f"Epochs to {NEAR} x OLS", "Batches skipped"],
                rows,
            )
        ],
        notes=_notes(last),
    )


def swept(config: RootConfig, job: Job, run: StageRun) -> Findings:
    """Test error, and time, against noise, rows or features."""
    chosen, source = _begin(config, job)
    quantity = chosen.study
    values = source.usable(quantity, chosen.values)
    frame = _sweep(chosen, source, quantity, values)
    write_table(frame.drop(columns=TIMES), job.folder / "tables" / "sweep.csv")
    label = QUANTITIES[quantity]
    if quantity == "noise":
        units = "units of the target" if source.options else "hundredths of the target's s.d."
        label = f"noise [{units}]"
    settings: dict[str, Any] = {
        "x": "value",
        "panels": panels(chosen.optimisers),
        "xlabel": label,
        "log_x": True,
    }
    medians = summarise(frame, "value", "mse").rename(columns={"optimiser": "solver"})
    figure = sweep(
        medians,
        reference=OLS,
        ylabel="test MSE [units of the target, squared]",
        title=f"Test error against {QUANTITIES[quantity]}: {source.name}, {chosen.epochs} epochs",
        **settings,
    )
    _save(figure, job.folder, quantity, job)
    ratios = summarise(frame, "value", "ratio")
    write_table(ratios, job.folder / "tables" / "ratios.csv")
    log_children(run, chosen.optimisers, ratios, "value", "ratio_to_ols")
    timing = Timing()
    if quantity != "noise":
        timing = _timing(chosen, source, quantity, frame, settings, job)
    last = _last(ratios, "value")
    shown = ratios.pivot_table(index="optimiser", columns="value", values="median")
    table = ShownTable(
        f"Test error as a multiple of least squares' (median over seeds), against {label}.",
        "tables/ratios.csv",
        ["Optimiser", *(f"{value:g}" for value in values)],
        [[name, *map(_ratio, shown.loc[name].to_numpy())] for name in chosen.optimisers],
    )
    dropped = sorted(set(chosen.values) - set(values))
    notes = [f"not possible with these data: {quantity} {dropped}"] if dropped else []
    return Findings(
        metrics=_metrics(last),
        sentence=_sentence(f"{source.name} with {values[-1]} as {QUANTITIES[quantity]}", last),
        facts=_facts(chosen, source, source.changed(quantity, values[0], 0)),
        captions={
            quantity: "Median over seeds, band from the smallest to the largest; dashed: least "
            "squares on the same rows."
        },
        tables=[table],
        notes=[*notes, *_notes(last)],
        timing=timing,
    )


def criteria(config: RootConfig, job: Job, run: StageRun) -> Findings:
    """Fill the table of five criteria from measurements."""
    chosen, source = _begin(config, job)
    plain = _concat(
        [
            regressor_curves(chosen.optimisers, source.plain(repeat), chosen.epochs)
            for repeat in range(chosen.repeats)
        ]
    )
    noisy = _sweep(chosen, source, "noise", [100])
    wide = _sweep(chosen, source, "features", source.usable("features", chosen.values))
    until = epochs_until(plain, NEAR)
    accuracy = _last(summarise(plain, "epoch", "ratio"), "epoch")
    noise = _last(summarise(noisy, "value", "ratio"), "value")
    by_features = summarise(wide, "value", "ratio")
    names = list(chosen.optimisers)
    features = {
        name: max(
            by_features["value"][
                (by_features["optimiser"] == name) & (by_features["median"] <= NEAR)
            ],
            default=0,
        )
        for name in names
    }
    seconds = last_epochs(plain).groupby("optimiser")["seconds"].median() / chosen.epochs
    columns = [
        "Optimiser",
        f"Convergence: epochs to {NEAR} x OLS",
        "Accuracy: error / OLS",
        "Noise 100: error / OLS",
        f"Features: most within {NEAR} x OLS",
        "Time: ms an epoch",
    ]
    raw = pd.DataFrame(
        {
            "optimiser": names,
            "epochs": [until[name] for name in names],
            "accuracy": [accuracy[name] for name in names],
            "noise": [noise[name] for name in names],
            "features": [features[name] for name in names],
        }
    )
    write_table(raw, job.folder / "tables" / "criteria.csv")
    timed = raw.assign(milliseconds=[1e3 * seconds[name] for name in names])
    write_table(timed, job.timing / "tables" / "criteria.csv")
    cells = [
        [
            row["optimiser"],
            _epochs(row["epochs"]),
            _ratio(row["accuracy"]),
            _ratio(row["noise"]),
            str(row["features"]) if row["features"] else "none",
            f"{row['milliseconds']:.2f}" if np.isfinite(row["milliseconds"]) else "-",
        ]
        for row in timed.to_dict("records")
    ]
    for name in names:
        with run.child(name, chosen.optimisers[name]) as child:
            numbers = timed.set_index("optimiser").loc[name].to_dict()
            child.log_metrics({str(k): float(v) for k, v in numbers.items() if np.isfinite(v)})
    tried = ", ".join(map(str, chosen.values))
    return Findings(
        metrics=_metrics(accuracy),
        sentence=_sentence(f"Five criteria on {source.name}", accuracy),
        facts={**_facts(chosen, source, source.plain(0)), "Features tried": tried},
        captions={},
        tables=[
            ShownTable(
                "Four of the five criteria, measured (medians over seeds); the fifth, time, is in "
                "timing/ and in MLflow.",
                "tables/criteria.csv",
                columns[:-1],
                [row[:-1] for row in cells],
            )
        ],
        notes=_notes(accuracy),
        timing=Timing(
            tables=[
                ShownTable(
                    "The five criteria, measured (medians over seeds).",
                    "tables/criteria.csv",
                    columns,
                    cells,
                )
            ]
        ),
    )


def _begin(config: RootConfig, job: Job) -> tuple[DremConfig, Source]:
    assert isinstance(config.regression, DremConfig)
    assert job.data is not None
    return config.regression, Source(config, job.data)


def _sweep(
    chosen: DremConfig, source: Source, quantity: str, values: Sequence[int]
) -> pd.DataFrame:
    """Return the last epochs of every repeat at every value."""
    return _concat(
        [
            last_epochs(
                regressor_curves(
                    chosen.optimisers, source.changed(quantity, value, repeat), chosen.epochs
                )
            ).assign(value=value)
            for value in values
            for repeat in range(chosen.repeats)
        ]
    )


def _timing(
    chosen: DremConfig,
    source: Source,
    quantity: str,
    frame: pd.DataFrame,
    settings: Mapping[str, Any],
    job: Job,
) -> Timing:
    times = summarise(frame, "value", "seconds").rename(columns={"optimiser": "solver"})
    write_table(times, job.timing / "tables" / "seconds.csv")
    figure = sweep(
        times.fillna(np.inf),
        reference=OLS,
        ylabel=f"time of {chosen.epochs} epochs [s]",
        title=f"Time against {QUANTITIES[quantity]}: {source.name}",
        **settings,
    )
    name = f"time_{quantity}"
    _save(figure, job.timing, name, job)
    caption = "Seconds of the updates alone, one thread; a triangle: diverged before the end."
    return Timing(captions={name: caption})


def repeat_seed(study: DremConfig, repeat: int) -> int:
    """Return the seed of a repeat: two studies of different seeds share none."""
    return 1000 * study.seed + repeat


def panels(optimisers: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return which optimisers a panel shows: the article's two laws, and what is ours."""
    shared = [name for name, options in optimisers.items() if options["kind"] in {"sgd", "adam"}]

    def having(*laws: str) -> list[str]:
        return [
            name
            for name, options in optimisers.items()
            if (options.get("law", "unit_noise") if options["kind"] == "drem" else options["kind"])
            in laws
        ]

    sets = {
        "the article's standard law": having("standard"),
        "the article's adaptive law": having("adaptive", "hybrid"),
        "without determinants (ours)": having("unit_noise", "exact"),
    }
    return {title: [*shared, *own] for title, own in sets.items() if own} or {"": shared}


def log_children(
    run: StageRun,
    optimisers: Mapping[str, Mapping[str, Any]],
    medians: pd.DataFrame,
    step: str,
    metric: str,
) -> None:
    """Log a child run per optimiser with the medians against epoch or the swept quantity."""
    for name, options in optimisers.items():
        own = medians[(medians["optimiser"] == name) & np.isfinite(medians["median"])]
        with run.child(name, options) as child:
            child.log_series(metric, own[step].astype(int).tolist(), own["median"].tolist())


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a CSV, whole or not at all."""
    write_bytes(path, frame.to_csv(index=False, lineterminator="\n").encode())


def key(name: str) -> str:
    """Return an optimiser's name as part of a metric's name."""
    return name.replace(",", "").replace(" ", "_")


def _concat(frames: list[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True)


def _save(figure: Any, folder: Path, name: str, job: Job) -> None:
    save_figure(figure, folder / "figures" / name, {**job.lineage, "figure": name})


def _last(medians: pd.DataFrame, by: str) -> dict[str, float]:
    last = medians[medians[by] == medians[by].max()].set_index("optimiser")["median"]
    return {str(name): float(value) for name, value in last.items() if name != OLS}


def _metrics(ratios: Mapping[str, float]) -> dict[str, float | None]:
    return {f"ratio_to_ols.{key(name)}": _finite(value) for name, value in ratios.items()}


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _ratio(value: float) -> str:
    if not np.isfinite(value):
        return "diverged"
    return f"{value:.2f}" if value < 100 else f"{value:.2g}"


def _epochs(value: float) -> str:
    return f"{value:.0f}" if np.isfinite(value) else "never"


def _skipped(frame: pd.DataFrame, name: str) -> float:
    share = frame["skipped"][frame["optimiser"] == name].mean()
    return float(share) if np.isfinite(share) else 0.0


def _sentence(where: str, ratios: Mapping[str, float]) -> str:
    parts = (f"{name} {_ratio(value)}" for name, value in ratios.items())
    return f"{where}, test error as a multiple of least squares': {'; '.join(parts)}."


def _notes(ratios: Mapping[str, float]) -> list[str]:
    lost = [name for name, value in ratios.items() if not np.isfinite(value)]
    return [f"diverged in at least half of the seeds: {', '.join(lost)}"] if lost else []


def _facts(chosen: DremConfig, source: Source, trial: Trial) -> dict[str, str]:
    made = "tables drawn like it" if source.options and chosen.study != "epochs" else "the table"
    return {
        "Data": f"{source.name} ({made})",
        "Training rows": str(len(trial.X)),
        "Weights": f"{trial.weights}, with the intercept",
        "Repeats": f"{chosen.repeats}, seed {chosen.seed}",
        "Epochs": str(chosen.epochs),
    }
