"""Kernel regression and classification by spectral filters, against scikit-learn's own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from roshap.datasets import Dataset
from roshap.errors import DataError
from roshap.plots import save_figure
from roshap.plots.spectral import FILTER_LABELS, RULE_LABELS, dots, path_scores
from roshap.regression.spectral import (
    ParameterWarning,
    SpectralClassifier,
    SpectralRegressor,
    choose,
)
from roshap.stages.regress import Findings, Job, ShownTable
from roshap.stages.regress_spectral_config import SpectralConfig
from roshap.stages.spectral_problems import write_table
from roshap.tracking import StageRun

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
_FILTERS_GROUP, _OTHERS_GROUP = "spectral filters", "scikit-learn"


def table(chosen: SpectralConfig, job: Job, run: StageRun) -> Findings:
    """Fit every filter and rule and the references on the same splits."""
    settings, data = chosen.table, job.data
    assert settings is not None
    assert data is not None
    X = data.X.to_numpy(dtype=np.float64)
    if not np.isfinite(X).all():
        raise DataError(f"{data.name} has missing values: spectral filters need complete rows")
    classify = data.task != "regression"
    rows = []
    for repeat in range(settings.repeats):
        split = _split(chosen, np.log1p(X) if settings.log else X, data, chosen.seed + repeat)
        rows += _filters(chosen, split, classify, repeat)
        references = _classifiers if classify else _regressors
        rows += [
            {"repeat": repeat, "group": _OTHERS_GROUP, "method": name, **about, "score": score}
            for name, score, about in references(chosen, split, chosen.seed + repeat)
        ]
        if repeat == 0:
            captions = _draw_path(chosen, job, split, classify, run)
    results = pd.DataFrame(rows)
    write_table(results, job.folder / "tables" / "scores.csv")
    score = "accuracy" if classify else "R2"
    groups = {
        str(group): {
            str(name): part.loc[part["method"] == name, "score"].tolist()
            for name in dict.fromkeys(part["method"])
        }
        for group, part in results.groupby("group", sort=False)
    }
    figure = dots(
        groups,
        x_label=f"{score} on {settings.test_share:.0%} of the rows (higher is better)",
        title=f"{data.name}: {settings.repeats} random split{'s' * (settings.repeats > 1)}",
    )
    save_figure(figure, job.folder / "figures" / "scores", {**job.lineage, "figure": "scores"})
    captions = {"scores": f"{score} of each split (dots) and the mean (bar).", **captions}
    return _findings(chosen, data, results, score, captions)


def _split(chosen: SpectralConfig, X: np.ndarray, data: Dataset, seed: int) -> Split:
    """Split and standardise by the training rows."""
    settings = chosen.table
    assert settings is not None
    X_train, X_test, y_train, y_test = train_test_split(
        X,
        data.y,
        test_size=settings.test_share,
        random_state=seed,
        stratify=data.y if data.task != "regression" else None,
    )
    scaler = StandardScaler().fit(X_train)
    return scaler.transform(X_train), scaler.transform(X_test), y_train, y_test


def _filters(
    chosen: SpectralConfig, split: Split, classify: bool, repeat: int
) -> list[dict[str, Any]]:
    """Return a row for each filter and rule; the kernel's width is chosen by the same rule."""
    settings = chosen.table
    assert settings is not None
    X_train, X_test, y_train, y_test = split
    rows = []
    for name in chosen.filters:
        for rule in chosen.rules:
            fits = [
                _fit(chosen, name, _rule(rule, classify), gamma, X_train, y_train, classify)
                for gamma in settings.gammas
            ]
            model, warning = min(fits, key=lambda fit: _chosen_score(fit[0]))
            rows.append(
                {
                    "repeat": repeat,
                    "group": _FILTERS_GROUP,
                    "method": f"{FILTER_LABELS[name]}, {_label(rule, classify)}",
                    "filter": name,
                    "rule": _rule(rule, classify),
                    "parameter": model.parameter_,
                    "value": model.value_,
                    "gamma": model.gamma,
                    "dof": model.dof_,
                    "warning": warning,
                    "score": float(model.score(X_test, y_test)),
                }
            )
    return rows


def _rule(rule: str, classify: bool) -> str:
    return "loo_error" if classify and rule == "loo" else rule


def _label(rule: str, classify: bool) -> str:
    return "leave-one-out accuracy" if _rule(rule, classify) == "loo_error" else RULE_LABELS[rule]


def _fit(
    chosen: SpectralConfig,
    name: str,
    rule: str,
    gamma: float,
    X: np.ndarray,
    y: np.ndarray,
    classify: bool,
    **fixed: Any,
) -> tuple[Any, str]:
    settings = chosen.table
    assert settings is not None
    make: Callable[..., Any] = SpectralClassifier if classify else SpectralRegressor
    model = make(
        name,
        gamma=gamma,
        rule=rule,
        levels=chosen.levels,
        folds=settings.folds,
        random_state=chosen.seed,
        **fixed,
    )
    with warnings.catch_warnings():
        # kept in the table; of the many widths that are tried only one matters
        warnings.simplefilter("ignore", ParameterWarning)
        model.fit(X, y)
    return model, (model.choice_.warning or "") if model.choice_ else ""


def _chosen_score(model: Any) -> float:
    score = float(model.choice_.curve[model.choice_.index])
    return score if np.isfinite(score) else np.inf


def _regressors(
    chosen: SpectralConfig, split: Split, seed: int
) -> list[tuple[str, float, dict[str, Any]]]:
    settings = chosen.table
    assert settings is not None
    X_train, X_test, y_train, y_test = split
    # KernelRidge has no intercept: the target is centred for it
    mean = float(y_train.mean())
    search = GridSearchCV(
        KernelRidge(kernel="rbf"),
        {"alpha": np.geomspace(1e-4, 1e2, 13), "gamma": settings.gammas},
        cv=KFold(settings.folds, shuffle=True, random_state=seed),
        scoring="neg_mean_squared_error",
    ).fit(X_train, y_train - mean)
    ridge = RidgeCV(alphas=np.geomspace(1e-3, 1e4, 50)).fit(X_train, y_train)
    best = search.best_params_
    about = {"value": float(best["alpha"]), "gamma": best["gamma"], "parameter": "alpha"}
    return [
        (
            "KernelRidge, grid search",
            float(search.best_estimator_.score(X_test, y_test - mean)),
            about,
        ),
        (
            "RidgeCV (linear)",
            float(ridge.score(X_test, y_test)),
            {"value": float(ridge.alpha_), "parameter": "alpha"},
        ),
    ]


def _classifiers(
    chosen: SpectralConfig, split: Split, seed: int
) -> list[tuple[str, float, dict[str, Any]]]:
    settings = chosen.table
    assert settings is not None
    X_train, X_test, y_train, y_test = split
    gamma = settings.gammas[0]
    naive, _ = _fit(chosen, "tikhonov", "loo_error", gamma, X_train, y_train, True, lam=0.0)
    models = {
        "logistic regression": LogisticRegression(max_iter=2000).fit(X_train, y_train),
        "SVC (rbf)": SVC(gamma=gamma, random_state=seed).fit(X_train, y_train),
        "unregularised kernel (lam = 0)": naive,
    }
    return [(name, float(m.score(X_test, y_test)), {}) for name, m in models.items()]


def _draw_path(
    chosen: SpectralConfig, job: Job, split: Split, classify: bool, run: StageRun
) -> dict[str, str]:
    """Draw one path: what the rules see, and the error on the test rows."""
    settings = chosen.table
    assert settings is not None
    X_train, X_test, y_train, y_test = split
    name = chosen.filters[0]
    rule = _rule(chosen.rules[0], classify)
    fits = [
        _fit(chosen, name, rule, gamma, X_train, y_train, classify)[0] for gamma in settings.gammas
    ]
    model = min(fits, key=_chosen_score)
    path = model.path_
    K = model._gram(X_test, model.X_fit_)
    scores = np.einsum("mn,lnt->lmt", K, path.coefficients) + path.intercepts[:, None, :]
    if classify:
        right = (
            (scores[:, :, 0] > 0) == (y_test == model.classes_[1])
            if scores.shape[2] == 1
            else model.classes_[scores.argmax(axis=2)] == y_test
        )
        shown = {"leave-one-out": path.loo_error, "test rows": 1.0 - right.mean(axis=1)}
        label = "share of rows misclassified"
    else:
        shown = {
            "GCV": path.gcv,
            "leave-one-out": path.loo,
            "test rows": np.mean((scores[:, :, 0] - y_test) ** 2, axis=1),
        }
        label = "mean squared error"
    taken: dict[str, float] = {}
    if not classify:
        taken = {rule: choose(path, rule).value for rule in chosen.rules if rule in ("gcv", "loo")}
    figure = path_scores(
        path.levels,
        shown,
        parameter=path.parameter,
        y_label=label,
        title=f"{FILTER_LABELS[name]}: what a rule sees, gamma = {model.gamma:.3g}",
        chosen=taken,
    )
    save_figure(figure, job.folder / "figures" / "path", {**job.lineage, "figure": "path"})
    with run.child(f"path-{name}") as child:
        for what, values in shown.items():
            child.log_series(
                f"{what.replace(' ', '_')}.by_place", list(range(len(values))), values.tolist()
            )
    return {"path": f"The whole path of {FILTER_LABELS[name]} from one decomposition, first split."}


def _findings(
    chosen: SpectralConfig,
    data: Dataset,
    results: pd.DataFrame,
    score: str,
    captions: dict[str, str],
) -> Findings:
    settings = chosen.table
    assert settings is not None
    means = results.groupby("method", sort=False)["score"].agg(["mean", "std"])
    ours = results[results["group"] == _FILTERS_GROUP]["method"].unique()
    others = results[results["group"] == _OTHERS_GROUP]["method"].unique()
    low, high = means.loc[ours, "mean"].min(), means.loc[ours, "mean"].max()
    sentence = f"{score} of the filters {low:.3f} to {high:.3f}; " + ", ".join(
        f"{name} {means.loc[name, 'mean']:.3f}" for name in others
    )
    metrics = {
        f"{score.lower()}_{_key(str(name))}": float(row["mean"]) for name, row in means.iterrows()
    }
    rows = [
        [
            str(name),
            f"{row['mean']:.4f}",
            f"{row['std']:.4f}" if np.isfinite(row["std"]) else "-",
        ]
        for name, row in means.iterrows()
    ]
    shown = ShownTable(
        f"{score} on test rows: mean and standard deviation over splits.",
        "tables/scores.csv",
        ["method", "mean", "sd"],
        rows,
    )
    flagged = results[results.get("warning", pd.Series("", results.index)).fillna("") != ""]
    notes = [
        f"{method}: {len(part)} of {settings.repeats} splits chose an end of the path"
        for method, part in flagged.groupby("method", sort=False)
    ]
    facts = {
        "data": f"{data.name}, {len(data.y)} rows, {data.X.shape[1]} features"
        + (", log1p" if settings.log else "")
        + ", standardised by the training rows",
        "splits": f"{settings.repeats}, {settings.test_share:.0%} test rows",
        "kernel": "rbf, gamma " + ", ".join(f"{g:.3g}" for g in settings.gammas),
    }
    return Findings(metrics, sentence, facts, captions, [shown], notes)


def _key(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name.lower()).strip("_")
