"""Test problems with known solutions: every filter with every rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from roshap.compute.files import write_bytes
from roshap.plots import save_figure
from roshap.plots.spectral import (
    FILTER_LABELS,
    RULE_LABELS,
    curves,
    filter_factors,
    l_curve,
    picard,
    rule_ratios,
    semiconvergence,
)
from roshap.regression.spectral import DenseDecomposition, Problem, decompose, problem, solutions
from roshap.regression.spectral.studies import Followed, follow, table_of
from roshap.stages.regress import Findings, Job, ShownTable
from roshap.stages.regress_spectral_config import SpectralConfig
from roshap.tracking import StageRun


def problems(chosen: SpectralConfig, job: Job, run: StageRun) -> Findings:
    """Run every filter and rule on every problem, noise and draw."""
    settings = chosen.problems
    assert settings is not None
    tables = []
    seeds = iter(
        np.random.SeedSequence(chosen.seed).spawn(
            len(settings.names) * len(settings.noise) * settings.draws
        )
    )
    captions: dict[str, str] = {}
    for name in settings.names:
        known = problem(name, settings.blur_n if name == "blur" else settings.n)
        operator = decompose(known.A)
        rules = list(chosen.rules)
        if not isinstance(operator, DenseDecomposition):
            rules = [rule for rule in rules if rule not in ("loo", "kfold")]
        for level in settings.noise:
            delta = level * float(np.linalg.norm(known.b))
            for draw in range(settings.draws):
                e = np.random.default_rng(next(seeds)).normal(size=len(known.b))
                b = known.b + e * (delta / np.linalg.norm(e))
                found = [
                    follow(operator, b, known.x, f, rules, delta=delta, levels=chosen.levels)
                    for f in chosen.filters
                ]
                tables.append(table_of(found).assign(problem=name, noise=level, draw=draw))
                if draw == 0 and level == settings.noise[min(1, len(settings.noise) - 1)]:
                    captions |= _draw(job, known, b, level, delta, found)
                    _log(run, name, found)
    results = pd.concat(tables, ignore_index=True)
    head = ["problem", "noise", "draw"]
    results = results[[*head, *[c for c in results if c not in head]]]
    write_table(results, job.folder / "tables" / "rules.csv")
    draws = f"{settings.draws} draws of the noise"
    noises = ", ".join(f"{value:g}" for value in settings.noise)
    _save(
        job,
        "rules",
        rule_ratios(results, title=f"What each rule loses ({draws})"),
    )
    overview = {
        "rules": f"Geometric mean of the loss over {draws} and relative noise {noises}; 1 is the "
        "smallest error on the filter's path."
    }
    _save(job, "filter_factors", filter_factors())
    captions["filter_factors"] = "The six filters, each set to halve a component near s = 0.01."
    return _findings(chosen, results, {**overview, **captions})


def _findings(chosen: SpectralConfig, results: pd.DataFrame, captions: dict[str, str]) -> Findings:
    settings = chosen.problems
    assert settings is not None
    shared = results.groupby("problem")["rule"].transform("nunique")
    logs = results.assign(log=np.log(results["ratio"]))
    # leave-one-out is not there for every operator: rules are compared where all of them are
    common = logs[shared == results["rule"].nunique()]
    common = common if len(common) else logs
    loss = np.exp(common.groupby("rule")["log"].mean())
    middle = common.groupby("rule")["ratio"].median()
    worst = common.groupby("rule")["ratio"].max()
    errors = results.groupby("filter")["best_error"].mean()
    loss = loss.reindex([rule for rule in chosen.rules if rule in loss.index])
    metrics = {
        **{f"loss_{rule}": float(value) for rule, value in loss.items()},
        **{f"median_{rule}": float(middle[rule]) for rule in loss.index},
        **{f"worst_{rule}": float(worst[rule]) for rule in loss.index},
        **{f"best_error_{name}": float(errors[name]) for name in chosen.filters},
    }
    free = [rule for rule in loss.index if rule != "discrepancy"] or list(loss.index)
    leader = min(free, key=lambda rule: loss[rule])
    sentence = (
        f"Of the rules that do not know the noise {RULE_LABELS[leader]} loses least: its error is "
        f"{middle[leader]:.2f} times the best possible in the middle (median), "
        f"{loss[leader]:.2f} by the geometric mean, {worst[leader]:.3g} at worst"
    )
    by = logs.groupby(["rule", "problem"])["log"].mean()
    names = list(settings.names)
    rows = [
        [
            RULE_LABELS[rule],
            f"{middle[rule]:.2f}",
            f"{loss[rule]:.2f}",
            f"{worst[rule]:.3g}",
            *(f"{np.exp(by[rule, n]):.2f}" if (rule, n) in by.index else "-" for n in names),
        ]
        for rule in loss.index
    ]
    shown = ShownTable(
        "Error over the smallest error on the path: median, geometric mean and worst case on the "
        "problems that every rule can do; geometric mean by problem "
        "(over filters, noise and draws).",
        "tables/rules.csv",
        ["rule", "median", "mean", "worst", *names],
        rows,
    )
    cases = len(results)
    flagged = results["warning"] != ""
    notes = [
        f"{int(flagged.sum())} of {cases} choices carry a warning; their mean loss is "
        f"{_mean(results['ratio'][flagged])}, that of the others "
        f"{_mean(results['ratio'][~flagged])}.",
        "Leave-one-out is exact for Tikhonov and an approximation for the other filters.",
    ]
    facts = {
        "problems": ", ".join(names),
        "size": f"n = {settings.n}"
        + (f"; blur {settings.blur_n} x {settings.blur_n} pixels" if "blur" in names else ""),
        "noise": f"relative {', '.join(f'{v:g}' for v in settings.noise)}; {settings.draws} draws",
        "filters": ", ".join(FILTER_LABELS[name] for name in chosen.filters),
    }
    return Findings(metrics, sentence, facts, captions, [shown], notes)


def _mean(ratios: pd.Series) -> str:
    return f"{np.exp(np.log(ratios).mean()):.2f}" if len(ratios) else "-"


def _draw(
    job: Job, known: Problem, b: np.ndarray, level: float, delta: float, found: list[Followed]
) -> dict[str, str]:
    """Draw one draw of the noise; return captions."""
    name, where = known.name, f"{known.name}, relative noise {level:g}"
    operator = decompose(known.A)
    _save(
        job,
        f"{name}_picard",
        picard(
            operator.sigma,
            np.abs(operator.analyse(b)),
            noise=delta / np.sqrt(len(b)),
            title=f"Picard plot: {where}",
        ),
    )
    captions = {
        f"{name}_picard": f"{where}: where the data coefficients level off at the noise, the naive "
        "solution takes off."
    }
    smooth = next((item for item in found if item.path.parameter == "lam"), None)
    if smooth is not None:
        title = f"L-curve of {FILTER_LABELS[smooth.filter]}: {where}"
        _save(job, f"{name}_l_curve", l_curve(smooth, title=title))
        captions[f"{name}_l_curve"] = f"{where}: what each rule takes along the L-curve."
    steps = [item for item in found if item.path.parameter == "steps"]
    if steps:
        figure = semiconvergence(steps, title=f"Semiconvergence: {where}")
        _save(job, f"{name}_semiconvergence", figure)
        captions[f"{name}_semiconvergence"] = (
            f"{where}: the error falls and rises again; the rules say where to stop."
        )
    if name != "blur":
        best = {}
        for item in found:
            xs = [x for _, x in solutions(operator, b, item.filter, item.path.levels)]
            best[f"{FILTER_LABELS[item.filter]}, error {item.errors[item.best]:.3f}"] = xs[
                item.best
            ]
        figure = curves(known.t, known.x, best, title=f"Best solutions on each path: {where}")
        _save(job, f"{name}_solutions", figure)
        captions[f"{name}_solutions"] = f"{where}: the solutions with the smallest errors."
    return captions


def _log(run: StageRun, name: str, found: list[Followed]) -> None:
    for item in found:
        with run.child(f"{name}-{item.filter}") as child:
            if item.path.parameter == "lam":
                # MLflow's steps are whole numbers: the place on the path
                places, what = list(range(len(item.errors))), "place"
            else:
                places, what = [int(v) for v in item.path.levels], item.path.parameter
            child.log_series(f"error.by_{what}", places, item.errors.tolist())
            child.log_series(f"residual.by_{what}", places, item.path.residual_norm.tolist())


def _save(job: Job, name: str, figure: Figure) -> None:
    save_figure(figure, job.folder / "figures" / name, {**job.lineage, "figure": name})


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a CSV with every digit, whole or not at all."""
    write_bytes(path, table.to_csv(index=False, lineterminator="\n").encode())
