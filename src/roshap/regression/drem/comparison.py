"""Optimisers side by side: error by epoch, against least squares, over seeds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from roshap.errors import ConfigError, ModelError
from roshap.regression.design import Array
from roshap.regression.divergence import DivergenceError
from roshap.regression.drem.classifier import DREMClassifier
from roshap.regression.drem.hybrid import HybridRegressor
from roshap.regression.drem.mixing import mix_square
from roshap.regression.drem.regressor import DREMRegressor
from roshap.regression.gradient import (
    AdamClassifierReference,
    AdamRegressorReference,
    SGDClassifierReference,
    SGDRegressorReference,
)

#: The line that every chart has.
OLS = "OLS"
REGRESSORS: Mapping[str, type[BaseEstimator]] = {
    "sgd": SGDRegressorReference,
    "adam": AdamRegressorReference,
    "drem": DREMRegressor,
}
CLASSIFIERS: Mapping[str, type[BaseEstimator]] = {
    "sgd": SGDClassifierReference,
    "adam": AdamClassifierReference,
    "drem": DREMClassifier,
}


@dataclass(frozen=True)
class Trial:
    """Training and test rows of one repeat."""

    X: Array
    y: NDArray[Any]
    X_test: Array
    y_test: NDArray[Any]
    seed: int

    @property
    def weights(self) -> int:
        """Number of weights with the intercept."""
        return self.X.shape[1] + 1


def split(X: Array, y: NDArray[Any], test_share: float, seed: int) -> Trial:
    """Split a table at random; labels stay in proportion."""
    labels = y if y.dtype.kind in "iu" else None
    parts = train_test_split(X, y, test_size=test_share, random_state=seed, stratify=labels)
    return Trial(parts[0], parts[2], parts[1], parts[3], seed)


def make_regressor(options: Mapping[str, Any], trial: Trial, epochs: int) -> Any:
    """Return an unfitted regressor from ``{kind: ..., parameters}``.

    Raises
    ------
    ConfigError
        For an unknown kind or parameter.
    """
    settings = dict(options)
    kind = settings.pop("kind", None)
    shared = {"epochs": epochs, "random_state": trial.seed}
    if kind == "hybrid":
        first = DREMRegressor("adaptive", alpha=settings.pop("alpha", 1e-3))
        then = AdamRegressorReference(learning_rate=settings.pop("learning_rate", 0.01))
        return _build(HybridRegressor, {**settings, "first": first, "then": then, **shared})
    if settings.pop("square", False):
        settings["batch_rows"] = trial.weights
    return _build(_of(REGRESSORS, kind), {**settings, **shared})


def make_classifier(options: Mapping[str, Any], trial: Trial, epochs: int) -> Any:
    """Return an unfitted classifier from ``{kind: ..., parameters}``."""
    settings = dict(options)
    kind = settings.pop("kind", None)
    return _build(
        _of(CLASSIFIERS, kind), {**settings, "epochs": epochs, "random_state": trial.seed}
    )


def _of(known: Mapping[str, type[BaseEstimator]], kind: Any) -> type[BaseEstimator]:
    if kind not in known:
        valid = [*known, "hybrid"] if known is REGRESSORS else [*known]
        raise ConfigError(f"optimiser kind {kind!r}: valid are {', '.join(valid)}")
    return known[kind]


def _build(kind: type[BaseEstimator], settings: dict[str, Any]) -> Any:
    known = kind._get_param_names()
    for name in settings:
        if name not in known:
            raise ConfigError(f"{kind.__name__} has no parameter {name!r}: {', '.join(known)}")
    return kind(**settings)


def regressor_curves(
    optimisers: Mapping[str, Mapping[str, Any]], trial: Trial, epochs: int
) -> pd.DataFrame:
    """Fit every optimiser on a trial.

    Returns
    -------
    DataFrame
        A row per optimiser and epoch: ``optimiser``, ``epoch``, ``seed``, ``mse`` on the test
        rows (``inf`` from where it diverged), ``ratio`` to least squares, ``skipped`` share of
        batches, and ``seconds`` of all updates so far. ``OLS`` is the epochs' constant line.
    """
    mix_square(np.ones((1, 1, 1)), np.ones((1, 1, 1)))  # compiled before anything is timed
    began = time.perf_counter()
    ols = LinearRegression().fit(trial.X, trial.y)
    seconds = time.perf_counter() - began
    floor = float(np.mean((ols.predict(trial.X_test) - trial.y_test) ** 2))
    frames = [_frame(OLS, [floor] * epochs, [0.0] * epochs, [seconds] + [0.0] * (epochs - 1))]
    for name, options in optimisers.items():
        history = _history(make_regressor(options, trial, epochs), trial)
        frames.append(
            _frame(name, *(history[key] for key in ("validation_loss", "skipped", "seconds")))
        )
        frames[-1] = _fill(frames[-1], name, epochs)
    whole = pd.concat(frames, ignore_index=True)
    return whole.assign(ratio=whole["mse"] / floor, seed=trial.seed)


def _history(model: Any, trial: Trial) -> dict[str, list[float]]:
    try:
        fitted = model.fit(trial.X, trial.y, validation=(trial.X_test, trial.y_test))
    except DivergenceError as error:
        return error.history
    except ModelError as error:
        raise ModelError(f"{type(model).__name__} on {len(trial.X)} rows: {error}") from error
    history: dict[str, list[float]] = fitted.history_
    return history


def _frame(name: str, mse: list[float], skipped: list[float], seconds: list[float]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "optimiser": name,
            "epoch": np.arange(1, len(mse) + 1),
            "mse": mse,
            "skipped": skipped,
            "seconds": np.cumsum(seconds),
        }
    )


def _fill(frame: pd.DataFrame, name: str, epochs: int) -> pd.DataFrame:
    """Add the epochs that a diverged optimiser has not reached."""
    frame = frame.assign(mse=frame["mse"].fillna(np.inf))
    missing = epochs - len(frame)
    if missing <= 0:
        return frame
    rest = _frame(name, [np.inf] * missing, [np.nan] * missing, [np.nan] * missing)
    return pd.concat([frame, rest.assign(epoch=rest["epoch"] + len(frame))])


def classifier_curves(
    optimisers: Mapping[str, Mapping[str, Any]], trial: Trial, epochs: int
) -> pd.DataFrame:
    """Fit every optimiser on a trial of labels.

    Returns
    -------
    DataFrame
        ``optimiser``, ``epoch``, ``seed``, ``loss`` and ``error`` on the test rows, ``seconds``.
    """
    frames = []
    for name, options in optimisers.items():
        model = make_classifier(options, trial, epochs)
        model.fit(trial.X, trial.y, validation=(trial.X_test, trial.y_test))
        history = model.history_
        frames.append(
            pd.DataFrame(
                {
                    "optimiser": name,
                    "epoch": np.arange(1, epochs + 1),
                    "loss": history["validation_loss"],
                    "error": history["validation_error"],
                    "seconds": np.cumsum(history["seconds"]),
                }
            )
        )
    return pd.concat(frames, ignore_index=True).assign(seed=trial.seed)


def summarise(frame: pd.DataFrame, by: str, column: str) -> pd.DataFrame:
    """Return median, smallest and largest ``column`` over seeds, per optimiser and ``by``."""
    grouped = frame.groupby(["optimiser", by], sort=False)[column]
    return grouped.agg(median="median", low="min", high="max").reset_index()


def epochs_until(frame: pd.DataFrame, limit: float) -> dict[str, float]:
    """Return per optimiser the first epoch whose median ratio to OLS is at most ``limit``.

    ``inf`` where there is none.
    """
    medians = summarise(frame, "epoch", "ratio")
    found = {}
    for name in medians["optimiser"].unique():
        reached = medians[(medians["optimiser"] == name) & (medians["median"] <= limit)]
        found[str(name)] = float(reached["epoch"].min()) if len(reached) else np.inf
    return found


def last_epochs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the last epoch."""
    return frame[frame["epoch"] == frame["epoch"].max()]
