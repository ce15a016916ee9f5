"""Robust feature selection as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from roshap.attribution.attributions import Attributions
from roshap.attribution.bootstrap import BootstrapSettings, bootstrap_attributions
from roshap.attribution.ranking import rank_attributions, rank_groups
from roshap.attribution.score import score
from roshap.attribution.splitter import BootstrapOOB
from roshap.attribution.stopping import LOOKS, StopRule, decision_of
from roshap.compute import Executor
from roshap.datasets import Dataset, from_frame
from roshap.errors import InputError, RoshapError
from roshap.models import handles_categorical, handles_nan

MAX_SEED = 2**31 - 1
_TARGET = "__target__"  # a column of X may be called y


class RoSHAPSelector(SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    """Select the features that rank highest by their RoSHAP score.

    The estimator is refitted on bootstrap samples of the training rows and explained on the rows
    out of bag; a feature's score is activity x strength x stability (arXiv 2605.15154).

    Parameters
    ----------
    estimator
        Unfitted classifier or regressor.
    k
        How many features to select: a number (all features where there are fewer),
        ``"auto"`` for the largest settled number from 5 to 15 (docs/certainty.md), or None for all
        that reach ``threshold``. With ``groups`` it counts groups.
    threshold
        Lowest score that is selected, in the score's units; None for no limit.
    n_runs
        Bootstrap samples, or ``"settled"``: as many as it takes until the k best are settled, at
        most 500.
    groups
        Mean absolute rank correlation from which features are scored, and selected or left out, as
        one group; None scores every feature for itself.
    eps, alpha
        Tolerance and error of "settled".
    random_state
        Seed of the samples. The estimator's own seed is its own affair: give it a fixed one.
    n_jobs
        Processes; None is 1, -1 is all cores. Never changes the result.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        RoSHAP scores (with ``groups``, of each feature's group); ``inf`` for a deterministic
        feature.
    ranking_ : DataFrame
        The ranking table, best feature first; its columns are explained by
        :data:`roshap.attribution.ranking.GLOSSARY`.
    support_ : ndarray of bool, shape (n_features,)
        Which features are selected.
    attributions_ : Attributions
        What the ranking is made of.
    decision_ : Decision or None
        Whether the selected set is settled; None with a fixed number of runs.
    n_runs_ : int
        Runs used.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    :meth:`fit` takes ``sample_weight`` and ``groups`` (rows of one group stay together: a drawn
    group is never out of bag). With metadata routing enabled, ``sample_weight`` goes where
    ``estimator.set_fit_request(sample_weight=True)`` asks for it, and ``groups`` to the splitter
    :class:`~roshap.attribution.splitter.BootstrapOOB`, which always asks.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> selector = RoSHAPSelector(Ridge(), k=3, n_runs=20, random_state=0).fit(X, y)
    >>> selector.transform(X).shape
    (442, 3)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        k: int | Literal["auto"] | None = 10,
        threshold: float | None = None,
        n_runs: int | Literal["settled"] = 100,
        groups: float | None = None,
        eps: float = 0.10,
        alpha: float = 0.05,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.k = k
        self.threshold = threshold
        self.n_runs = n_runs
        self.groups = groups
        self.eps = eps
        self.alpha = alpha
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, **params: Any) -> RoSHAPSelector:
        """Bootstrap the estimator and choose the features.

        Parameters
        ----------
        X
            (n_samples, n_features) array or data frame.
        y
            (n_samples,) target.
        **params
            ``sample_weight`` and ``groups``, (n_samples,) each.

        Raises
        ------
        InputError
            Where a parameter, X or y cannot be used (a ``ValueError`` as well).
        """
        weights, groups = self._metadata(params)
        self._check_parameters()
        X, y = self._check_data(X, y)
        try:
            data = from_frame(
                X, y, task=self._task(y), target=_TARGET, weights=weights, groups=groups
            )
            found = self._bootstrap(data)
            self._select(found)
        except RoshapError as error:
            raise InputError(f"{type(self).__name__}: {error}") from error
        return self

    def _check_parameters(self) -> None:
        k, runs = self.k, self.n_runs
        if not (k in (None, "auto") or _is_at_least(k, 1)):
            raise InputError(f"k={k!r}: must be 1 or more, 'auto' or None")
        if not (runs == "settled" or _is_at_least(runs, 2)):
            raise InputError(f"n_runs={runs!r}: must be 2 or more, or 'settled'")
        if k is None and self.threshold is None:
            raise InputError("k=None needs a threshold")
        if runs == "settled" and k is None:
            raise InputError("n_runs='settled' needs k: a number or 'auto'")
        if k == "auto" and runs != "settled":
            raise InputError("k='auto' needs n_runs='settled'")

    def _check_data(self, X: Any, y: Any) -> tuple[pd.DataFrame, np.ndarray]:
        """Return X as a table whose names are unique, and y; set what scikit-learn expects."""
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        has_categories = isinstance(X, pd.DataFrame) and any(
            isinstance(dtype, pd.CategoricalDtype) for dtype in X.dtypes
        )
        if has_categories:
            table = X
            _, y = validate_data(self, X, y, skip_check_array=True)
            y = np.asarray(y)
        else:
            nan = "allow-nan" if handles_nan(self.estimator) else True
            array, y = validate_data(
                self,
                X,
                y,
                dtype=np.float64,
                ensure_all_finite=nan,
                ensure_min_samples=2,
                y_numeric=is_regressor(self.estimator),
            )
            table = pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            table = table.set_axis([str(name) for name in names], axis=1)
        if is_classifier(self.estimator):
            check_classification_targets(y)
        return table.reset_index(drop=True), y

    def _task(self, y: np.ndarray) -> Any:
        if is_regressor(self.estimator):
            return "regression"
        if not is_classifier(self.estimator):
            return None  # inferred from y
        if len(np.unique(y)) < 2:
            raise InputError(f"{type(self).__name__}: y has one class, at least two are needed")
        return "binary" if type_of_target(y) == "binary" else "multiclass"

    def _bootstrap(self, data: Dataset) -> Attributions:
        rule = None
        runs = self.n_runs
        if runs == "settled":
            assert self.k is not None
            if self.k == "auto" or self.k < data.p:
                rule = StopRule(k=self.k, eps=self.eps, alpha=self.alpha)
                runs = LOOKS[-1]
            else:  # no feature is left out: nothing has to settle
                runs = LOOKS[0]
        seed = int(check_random_state(self.random_state).randint(MAX_SEED))
        return bootstrap_attributions(
            data,
            clone(self.estimator),
            runs=int(runs),
            seed=seed,
            settings=BootstrapSettings(min_per_class=1, row_level=self.groups is not None),
            executor=Executor(workers=effective_n_jobs(self.n_jobs)),
            stop=rule,
            groups_threshold=self.groups,
        )

    def _select(self, found: Attributions) -> None:
        """Choose the features, and keep what says why."""
        features = list(found.features)
        self.attributions_ = found
        self.decision_ = decision_of(found.meta)
        self.n_runs_ = found.runs
        k = self.decision_.k if self.k == "auto" and self.decision_ is not None else self.k
        self.ranking_ = rank_attributions(found, k=10 if k is None else int(k))
        place = self.ranking_.set_index("feature").loc[features]
        rank = place["rank"].to_numpy(dtype=int)
        self.scores_ = score(found.scores).roshap
        if found.groups is not None:
            rank = rank.copy()
            units = rank_groups(found).set_index("group")
            of_unit = score(found.groups.scores).roshap
            name = np.where(place["group"] == "", features, place["group"])
            rank = units.loc[name, "rank"].to_numpy(dtype=int)
            for members, value in zip(found.groups.members, of_unit, strict=True):
                self.scores_[list(members)] = value
        chosen = np.ones(len(features), dtype=bool) if k is None else rank <= int(k)
        if self.threshold is not None:
            chosen &= self.scores_ >= self.threshold
        self.support_ = chosen

    def _metadata(self, params: dict[str, Any]) -> tuple[Any, Any]:
        """Return sample weights and groups from what was passed to fit."""
        from sklearn import get_config

        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **params)
            wanted = dict(routed.estimator.fit)
            weights, groups = wanted.pop("sample_weight", None), routed.splitter.split.get("groups")
        else:
            wanted = dict(params)
            weights, groups = wanted.pop("sample_weight", None), wanted.pop("groups", None)
        unknown = [name for name, value in wanted.items() if value is not None]
        if unknown:
            raise InputError(
                f"{type(self).__name__}.fit takes sample_weight and groups, not {unknown[0]!r}"
            )
        return weights, groups

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how metadata goes on: see scikit-learn's user guide on metadata routing."""
        router = MetadataRouter(owner=type(self).__name__)
        router.add(
            estimator=get_routing_for_object(self.estimator),
            method_mapping=MethodMapping().add(caller="fit", callee="fit"),
        )
        router.add(
            splitter=BootstrapOOB(),
            method_mapping=MethodMapping().add(caller="fit", callee="split"),
        )
        return router

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if self.estimator is not None:
            inner = get_tags(self.estimator)
            tags.input_tags.allow_nan = handles_nan(self.estimator)
            tags.input_tags.categorical = handles_categorical(self.estimator)
            tags.target_tags.multi_output = False
            tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        return tags


def _is_at_least(value: Any, least: int) -> bool:
    is_int = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_int and value >= least
