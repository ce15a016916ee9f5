"""Kernel regression and classification by spectral filters, as scikit-learn estimators."""

from __future__ import annotations

import dataclasses
import logging
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from roshap.regression.spectral.errors import ParameterWarning, SpectralError
from roshap.regression.spectral.filters import Array, Filter, make_filter
from roshap.regression.spectral.kernel import ExactProblem, KernelProblem, path_of
from roshap.regression.spectral.levels import Levels, wanted_levels
from roshap.regression.spectral.link import fit_scale
from roshap.regression.spectral.nystroem import NystroemProblem
from roshap.regression.spectral.rules import Choice, check_rule, choose
from roshap.regression.spectral.spectrum import Path

log = logging.getLogger(__name__)

_SPARSE = ("csr", "csc")
_METHODS = ("auto", "exact", "nystroem")
_LOO_RULES = ("loo", "loo_error")
#: Rows that are predicted at a time, as memory of their kernel matrix.
_PREDICT_BYTES = 64 * 2**20


class _Spectral(BaseEstimator):
    """What regression and classification share."""

    value_: float
    dual_coef_: Array
    intercept_: Any

    def __init__(
        self,
        filter: str | Filter = "tikhonov",
        *,
        kernel: str | Callable[..., float] = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        fit_intercept: bool = True,
        rule: str = "auto",
        lam: float | None = None,
        steps: int | None = None,
        components: int | None = None,
        levels: Levels = 50,
        noise: float | None = None,
        tau: float = 1.0,
        folds: int = 5,
        method: Literal["auto", "exact", "nystroem"] = "auto",
        exact_up_to: int = 5000,
        landmarks: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.filter = filter
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.rule = rule
        self.lam = lam
        self.steps = steps
        self.components = components
        self.levels = levels
        self.noise = noise
        self.tau = tau
        self.folds = folds
        self.method = method
        self.exact_up_to = exact_up_to
        self.landmarks = landmarks
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    # -- the kernel

    def _gram(self, X: Any, Y: Any) -> Array:
        if self.kernel == "precomputed":
            return np.asarray(X)
        params: dict[str, Any] = self.kernel_params or {}
        if not callable(self.kernel):
            params = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
            if self.kernel not in PAIRWISE_KERNEL_FUNCTIONS:
                valid = ", ".join([*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"])
                raise SpectralError(f"unknown kernel {self.kernel!r} (valid: {valid})")
        K = np.asarray(
            pairwise_kernels(X, Y, metric=self.kernel, filter_params=True, **params),
            dtype=np.float64,
        )
        if not np.isfinite(K).all():
            raise SpectralError("the kernel gives NaN or infinity")
        return K

    def _square(self, X: Any) -> Array:
        """Return the Gram matrix of the rows to learn from."""
        K = self._gram(X, X)
        if K.shape[0] != K.shape[1]:
            raise SpectralError(f"a precomputed kernel must be a square matrix, not {K.shape}")
        off = float(np.max(np.abs(K - K.T), initial=0.0))
        if off > 1e-8 * float(np.max(np.abs(K), initial=0.0)):
            raise SpectralError(f"the kernel matrix is not symmetric: K - K' reaches {off:.3g}")
        return K

    # -- fitting

    def _problem(self, X: Any, Y: Array, w: Array, method: str) -> KernelProblem:
        if method == "exact":
            return ExactProblem(self._square(X), Y, w, centre=self.fit_intercept, basis=X)
        rng = check_random_state(self.random_state)
        count = min(int(self.landmarks), X.shape[0])
        chosen = np.sort(rng.choice(X.shape[0], count, replace=False))
        return NystroemProblem(self._gram, X, Y, w, X[chosen], centre=self.fit_intercept)

    def _method(self, n: int) -> str:
        if self.method not in _METHODS:
            raise SpectralError(f"method={self.method!r} (valid: {', '.join(_METHODS)})")
        if self.kernel == "precomputed":
            if self.method == "nystroem":
                raise SpectralError("a precomputed kernel is decomposed exactly: it has no rows")
            return "exact"
        if self.method != "auto":
            return self.method
        if n <= self.exact_up_to:
            return "exact"
        log.warning(
            "%d rows are more than exact_up_to=%d: Nystroem features with %d landmarks "
            "(method='exact' decomposes the whole kernel matrix)",
            n,
            self.exact_up_to,
            min(self.landmarks, n),
        )
        return "nystroem"

    def _fit(self, X: Any, Y: Array, w: Array, rule: str) -> Array | None:
        """Fit all columns of Y at once; return leave-one-out scores where they are asked for."""
        if self.landmarks < 1:
            raise SpectralError(f"landmarks={self.landmarks}: must be at least 1")
        check_rule(rule)
        filter = make_filter(self.filter)
        self.method_ = self._method(X.shape[0])
        problem = self._problem(X, Y, w, self.method_)
        spectrum = problem.spectrum
        fixed: dict[str, Any] = {
            name: getattr(self, name) for name in ("lam", "steps", "components")
        }
        on_scale, levels, given = wanted_levels(
            filter, spectrum.s, **fixed, levels=self.levels, scale=spectrum.n
        )
        exact = self.method_ == "exact"
        path = path_of(
            problem,
            filter,
            on_scale,
            levels,
            leave_out=exact or (rule in _LOO_RULES and not given),
            coefficients=exact,
            loss=self._missed(Y),
            w=w,
        )
        if rule == "kfold" and not given:
            path = dataclasses.replace(path, kfold=self._fold_losses(X, Y, w, filter, levels))
        index = 0
        self.choice_: Choice | None = None
        if not given:
            delta = None if self.noise is None else self.noise * np.sqrt(spectrum.n * Y.shape[1])
            self.choice_ = choose(path, rule, delta=delta, tau=self.tau)
            index = self.choice_.index
        level = float(on_scale[index])
        gain = filter.gain(spectrum.s, level)
        self.dual_coef_, self.intercept_ = problem.dual(gain)
        self.X_fit_ = problem.basis
        self.spectrum_ = spectrum
        self.path_: Path = path
        self.parameter_ = filter.parameter
        self.value_ = float(levels[index])
        self.dof_ = float(path.dof[index])
        if self.choice_ is not None and self.choice_.warning:
            text = f"{rule} for {filter.name}: {self.choice_.warning}"
            # the caller of fit is what a person can change
            warnings.warn(text, ParameterWarning, stacklevel=3)
        return self._loo_scores(problem, filter, level, Y)

    def _missed(self, Y: Array) -> Callable[[Array], Array] | None:
        return None

    def _loo_scores(
        self, problem: KernelProblem, filter: Filter, level: float, Y: Array
    ) -> Array | None:
        return None

    def _loss(self, Y: Array, errors: Array) -> Array:
        """Return the loss of rows (n, L) from residuals (n, L, t): what k folds average."""
        return np.mean(errors**2, axis=2)

    def _fold_losses(self, X: Any, Y: Array, w: Array, filter: Filter, levels: Array) -> Array:
        n = X.shape[0]
        if not 2 <= self.folds <= n:
            raise SpectralError(f"folds={self.folds}: must be 2 to {n}, the number of rows")
        order = check_random_state(self.random_state).permutation(n)
        total = np.zeros(len(levels))
        for fold in range(self.folds):
            test, train = order[fold :: self.folds], np.delete(order, slice(fold, None, self.folds))
            if self.kernel == "precomputed":
                inside, across = X[np.ix_(train, train)], X[np.ix_(test, train)]
            else:
                inside, across = X[train], X[test]
            problem = self._problem(inside, Y[train], w[train], self.method_)
            scale = problem.spectrum.n if filter.parameter == "lam" else 1.0
            K = self._gram(across, problem.basis)
            errors = np.empty((len(test), len(levels), Y.shape[1]))
            sweep = filter.sweep(problem.spectrum.s, levels * scale)
            for place, (gain, _) in enumerate(sweep):
                c, b = problem.dual(gain)
                errors[:, place] = Y[test] - (K @ c + b)
            total += w[test] @ self._loss(Y[test], errors)
        return total / float(w.sum())

    def _scores(self, X: Any) -> Array:
        """Return the fitted function's values, of shape (n, t)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=_SPARSE, dtype=np.float64, reset=False)
        if self.kernel == "precomputed":
            return X[:, self._kept] @ self.dual_coef_ + self.intercept_
        if hasattr(X, "tocsr"):
            X = X.tocsr()
        size = max(1, _PREDICT_BYTES // (8 * self.X_fit_.shape[0]))
        parts = [
            self._gram(X[start : start + size], self.X_fit_) @ self.dual_coef_
            for start in range(0, X.shape[0], size)
        ]
        return np.vstack(parts) + self.intercept_

    def _weighted(self, X: Any, sample_weight: Any) -> tuple[Any, Array, np.ndarray]:
        """Return the rows with a positive weight, their weights and which they are."""
        w = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        kept = w > 0
        if not kept.any():
            raise SpectralError("all sample weights are zero")
        if hasattr(X, "tocsr"):
            X = X.tocsr()
        self._kept = np.flatnonzero(kept)
        if kept.all():
            return X, w, kept
        X = X[np.ix_(kept, kept)] if self.kernel == "precomputed" else X[kept]
        return X, w[kept], kept


class SpectralRegressor(RegressorMixin, _Spectral):
    """Kernel least squares regularised by a spectral filter.

    One eigendecomposition of the kernel matrix K gives the fit, its degrees of freedom and its
    leave-one-out error for every parameter. For ``K = Q diag(s) Q'`` the fit is
    ``f(x) = k(x)' Q G(s) Q'y``; with the default filter this is
    ``KernelRidge(alpha = n * lam)``.

    Parameters
    ----------
    filter : str or Filter
        ``tikhonov``, ``iterated_tikhonov``, ``tsvd``, ``landweber``, ``showalter``, ``nu_method``,
        or an instance with parameters of its own, such as ``Landweber(eta=0.1)``.
    kernel, gamma, degree, coef0, kernel_params
        As in :class:`sklearn.kernel_ridge.KernelRidge`; ``gamma=None`` is one over the number of
        features. The kernel must be positive semi-definite.
    fit_intercept : bool
        Whether a constant that is not penalised is fitted, by centring.
    rule : str
        How the parameter is chosen where none is given: ``gcv`` (the default of a regressor),
        ``loo``, ``loo_error`` (the default of a classifier: the share of rows misclassified),
        ``kfold``, ``discrepancy``, ``l_curve``, ``quasi_optimality``.
    lam : float, optional
        Of ``tikhonov``, ``iterated_tikhonov`` and ``showalter``: the shift is ``n * lam``, n the
        sum of the weights. For ``tsvd`` a threshold: eigenvalues of at least ``n * lam`` are kept.
    steps : int, optional
        Of ``landweber`` and ``nu_method``.
    components : int, optional
        Of ``tsvd``.
    levels : int or sequence of float
        How many parameters the rule looks at, or which.
    noise : float, optional
        Standard deviation of the noise, for ``discrepancy``.
    tau : float
        Its safety factor.
    folds : int
        Of ``kfold``.
    method : {"auto", "exact", "nystroem"}
        ``auto`` takes Nystroem features for more than ``exact_up_to`` rows, and logs so.
    exact_up_to : int
    landmarks : int
        Rows that Nystroem features are built on, drawn at random.
    random_state : int, RandomState or None
        Draws the landmarks and the folds.

    Attributes
    ----------
    parameter_, value_ : str, float
        The parameter and its value.
    choice_ : Choice or None
        What the rule saw and whether to distrust it; None where the parameter was given.
    path_ : Path
        All levels: norms, degrees of freedom, GCV, leave-one-out (labelled exact or not) and
        coefficients. With Nystroem features no coefficients, and leave-one-out only if the rule
        needs it.
    dof_ : float
        Degrees of freedom of the fit.
    method_ : {"exact", "nystroem"}
    spectrum_ : Spectrum
    X_fit_, dual_coef_, intercept_
        The rows of the kernel expansion, its coefficients (rows, t) and the constants (t,).

    Notes
    -----
    A row of weight w counts as w rows: in ``n * lam``, in the degrees of freedom, and in
    leave-one-out, which leaves out one unit of a weight above one.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> SpectralRegressor:
        """Fit the whole path and keep the solution that the rule chooses.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (n, p)
            Or the kernel matrix (n, n) where the kernel is precomputed.
        y : array_like of shape (n,) or (n, t)
        sample_weight : array_like of shape (n,), optional

        Raises
        ------
        ValueError
            For data or parameters that cannot be used; :class:`SpectralError` where it is about
            filters and rules.

        Warns
        -----
        ParameterWarning
            Where the rule's optimum sits at an end of the path.
        """
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=_SPARSE,
            dtype=np.float64,
            multi_output=True,
            y_numeric=True,
        )
        X, w, kept = self._weighted(X, sample_weight)
        Y = np.asarray(y, dtype=np.float64)[kept]
        rule = "gcv" if self.rule == "auto" else self.rule
        if rule == "loo_error":
            raise SpectralError("loo_error counts misclassified rows: a regressor has loo")
        self._fit(X, Y.reshape(len(Y), -1), w, rule)
        self._one_target = Y.ndim == 1
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Return predictions of shape (n,) or (n, t)."""
        scores = self._scores(X)
        return scores[:, 0] if self._one_target else scores


class SpectralClassifier(ClassifierMixin, _Spectral):
    """Classification by kernel least squares on +-1, regularised by a spectral filter.

    Two classes need one function, more are one against the rest from the same decomposition.
    Parameters and attributes are those of :class:`SpectralRegressor`; the default rule is
    ``loo_error``, and also:

    Attributes
    ----------
    classes_ : ndarray
    scale_ : float
        Of the link: probabilities are ``sigmoid(scale_ * score)``, or the softmax of scaled scores.
        Fitted on leave-one-out scores, which are approximate for filters other than Tikhonov.
    """

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> SpectralClassifier:
        """Fit the whole path, keep the solution that the rule chooses, and calibrate it.

        Parameters, errors and warnings as in :meth:`SpectralRegressor.fit`; y holds classes.
        """
        X, y = validate_data(self, X, y, accept_sparse=_SPARSE, dtype=np.float64)
        check_classification_targets(y)
        X, w, kept = self._weighted(X, sample_weight)
        self.classes_, codes = np.unique(np.asarray(y)[kept], return_inverse=True)
        if len(self.classes_) < 2:
            raise SpectralError(f"y has only one class, '{self.classes_[0]}': two are needed")
        Y = 2.0 * np.eye(len(self.classes_))[codes] - 1.0
        if len(self.classes_) == 2:
            Y = Y[:, 1:]
        rule = "loo_error" if self.rule == "auto" else self.rule
        scores = self._fit(X, Y, w, rule)
        assert scores is not None
        self.scale_ = fit_scale(_both(scores), codes, w)
        return self

    def _missed(self, Y: Array) -> Callable[[Array], Array]:
        return lambda errors: self._loss(Y, errors)

    def _loss(self, Y: Array, errors: Array) -> Array:
        """Return 1 for rows (n, L) whose class is not the one with the largest score."""
        scores = np.where(np.isfinite(errors), Y[:, None, :] - errors, np.nan)
        # a row that cannot be predicted counts as missed
        known = np.asarray(np.isfinite(scores).all(axis=2))
        if Y.shape[1] == 1:
            right = np.asarray((scores[:, :, 0] > 0) == (Y > 0))
        else:
            filled = np.where(known[:, :, None], scores, 0.0)
            right = np.asarray(np.argmax(filled, axis=2) == np.argmax(Y, axis=1)[:, None])
        return np.where(right & known, 0.0, 1.0)

    def _loo_scores(self, problem: KernelProblem, filter: Filter, level: float, Y: Array) -> Array:
        residual = filter.residual(problem.spectrum.s, level)
        return Y - problem.leave_one_out(residual[None, :])[:, 0]

    def decision_function(self, X: ArrayLike) -> Array:
        """Return scores: (n,), positive for the second class, or (n, classes)."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the class with the largest score."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else np.argmax(scores, axis=1)
        return self.classes_[codes]

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return probabilities (n, classes); the largest is that of the predicted class."""
        scores = _both(self._scores(X))
        return softmax(self.scale_ * scores, axis=1)


def _both(scores: Array) -> Array:
    """Return a column for each class: two classes share one score, half of it each."""
    return np.hstack([-scores, scores]) / 2 if scores.shape[1] == 1 else scores
