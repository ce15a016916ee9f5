"""DREM as a scikit-learn regressor."""

from __future__ import annotations

import warnings

import numpy as np

from roshap.errors import ModelError
from roshap.regression.design import Array, column_distances
from roshap.regression.drem.laws import adaptive_gain, blend, exact_average, standard_gain
from roshap.regression.drem.mixing import Mixed, batches, mix_memory, mix_square, mix_tall
from roshap.regression.iterative import IterativeRegressor, unknown

LAWS = ("standard", "adaptive", "unit_noise", "exact")
ARTICLE = ("standard", "adaptive")


class DREMRegressor(IterativeRegressor):
    """Linear regression by dynamic regressor extension and mixing.

    Every batch is mixed into one scalar regression per weight; a law combines the batches.

    Parameters
    ----------
    law : {"unit_noise", "exact", "standard", "adaptive"}
        ``standard`` and ``adaptive`` are the article's gradient laws with gain ``alpha D^2``
        and ``alpha D^2 / (1 + alpha D^2)``, D the batch's determinant: they run away or freeze
        above a handful of features. ``unit_noise`` divides each scalar regression by its own
        noise: gain ``a_i / S_i`` with ``a_i = 1 / (G^-1)_ii``, no step to choose. ``exact``
        weights whole batches by ``det G``: over all subsets of rows it is least squares.
    batch_rows : int, optional
        Rows of a batch, at least q, the number of weights. By default q for the article's laws
        and with ``robust``, else 2q (all rows where there are fewer than 2q).
    epochs : int
        Passes over the shuffled rows. A ragged last batch is dropped; other rows are in the next.
    alpha : float
        Step of the article's laws. ``standard`` needs ``alpha D^2 < 2`` in every batch.
    eps : float
        The article's laws skip batches with ``|D| < eps``.
    forget : float
        Factor on the past per batch, for coefficients that drift; 1 forgets nothing.
    prior : float
        ``S_i(0)``: weight of the start, as of so many rows; pulls towards it as ridge does.
    memory : float, optional
        Kreisselmeier's extension ``G <- memory G + X_b' X_b`` before mixing; with 1 and
        ``unit_noise`` it is recursive least squares.
    finite_time : bool
        Take the start out of the estimate: ``(w - left w_0) / (1 - left)``.
    robust : bool
        Coordinate-wise median of the batch solutions, for rows that are outliers.
    collinear : {"drop", "error"}
        What happens to features that others make up: coefficient 0 and a warning, or an error.
    fit_intercept, standardise : bool
        A column of ones in front; features of mean 0 and standard deviation 1.
    init : {"zeros", "random"}
        Start of the weights.
    warm_start : bool
        ``fit`` goes on from the last fit.
    random_state : int, RandomState or None
        Of the shuffles and the random start.

    Attributes
    ----------
    w_ : (q, k) array
        Weights of the standardised, extended design.
    information_ : (q,) array
        ``S_i``; of the laws ``unit_noise`` and, with memory, ``exact``.
    variance_ : (q, k) array
        ``sigma^2 / S_i`` per weight, of one pass: an upper bound after several.
    sigma2_ : (k,) array
        Noise variance from the residuals of the rows of the last call.
    diagnostics_ : dict
        ``skipped`` (share of singular batches), ``effective_share`` (Kish's effective number of
        batches behind the weights, as a share of the last pass), ``smallest_distance`` (of a
        column to the span of the others, ``1 / sqrt(VIF)``).
    dropped_ : (d,) int array
        Features left out: constant ones and combinations of those before them.

    See Also
    --------
    roshap.regression.drem.mixing : The identity that replaces Cramer's rule.

    Notes
    -----
    The laws are those of A. Margun, K. Zimenko, A. Bobtsov, "Application of the dynamic regressor
    extension and mixing approach in machine learning on the example of perceptron" (2025), after
    S. Aranovskiy et al., doi:10.1109/TAC.2016.2614889. ``unit_noise`` and ``exact`` are ours.
    """

    def __init__(
        self,
        law: str = "unit_noise",
        *,
        batch_rows: int | None = None,
        epochs: int = 10,
        alpha: float = 1e-3,
        eps: float = 1e-12,
        forget: float = 1.0,
        prior: float = 0.0,
        memory: float | None = None,
        finite_time: bool = False,
        robust: bool = False,
        collinear: str = "drop",
        fit_intercept: bool = True,
        standardise: bool = True,
        init: str = "zeros",
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.law = law
        self.batch_rows = batch_rows
        self.epochs = epochs
        self.alpha = alpha
        self.eps = eps
        self.forget = forget
        self.prior = prior
        self.memory = memory
        self.finite_time = finite_time
        self.robust = robust
        self.collinear = collinear
        self.fit_intercept = fit_intercept
        self.standardise = standardise
        self.init = init
        self.warm_start = warm_start
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        if self.law not in LAWS:
            raise unknown("law", self.law, LAWS)
        if self.collinear not in ("drop", "error"):
            raise unknown("collinear", self.collinear, ("drop", "error"))
        if not self.alpha > 0:
            raise ModelError(f"alpha={self.alpha}: a positive step")
        for name in ("forget", "memory"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                raise ModelError(f"{name}={value}: above 0 and at most 1")
        if self.robust and (self.law in ARTICLE or self.memory is not None):
            raise ModelError(
                "robust=True takes the median of the batch solutions: it goes with "
                "law='unit_noise' or 'exact' and without memory"
            )

    def _reset(self, n: int, rng: np.random.RandomState) -> None:
        q, k = self.w_.shape
        p = self.n_features_in_
        self.dropped_ = np.setdiff1d(np.arange(p), self.design_.kept)
        if len(self.dropped_):
            self._complain()
        self.batch_rows_ = self._choose_rows(n, q)
        self._start_at(self.w_)
        self._memory = (np.zeros((q, q)), np.zeros((q, k)))
        self._log_weight = -np.inf
        self._solutions: list[Array] = []
        self._waiting = (np.empty((0, q)), np.empty((0, k)))
        self._seen = self._used = self._passes = 0
        self._last = np.empty(0)

    def _start_at(self, w: Array) -> None:
        q, _ = w.shape
        self.w_ = self._w0 = w
        self.information_ = np.full(q, float(self.prior))
        self._spent = np.zeros(q)  # sum of squared batch weights: forgetting makes it differ from S
        self._sides = self.prior * w
        self._left = np.ones(q)

    def _complain(self) -> None:
        names = getattr(self, "feature_names_in_", None)
        shown = [str(names[j]) if names is not None else str(j) for j in self.dropped_[:5]]
        text = (
            f"{len(self.dropped_)} features are constant or a combination of others: "
            + ", ".join(shown)
            + (", ..." if len(self.dropped_) > len(shown) else "")
        )
        if self.collinear == "error":
            raise ModelError(f"{text}; leave them out, or collinear='drop'")
        warnings.warn(f"{text}; their coefficients are 0", UserWarning, stacklevel=5)

    def _choose_rows(self, n: int, q: int) -> int:
        if n < q:
            raise ValueError(
                f"n_samples={n} rows cannot determine {q} weights: DREM needs at least as many "
                "rows as weights, and twice as many to do well"
            )
        if self.batch_rows is None:
            square = self.law in ARTICLE or self.robust
            return q if square else min(2 * q, n)
        if not q <= self.batch_rows <= n:
            raise ModelError(
                f"batch_rows={self.batch_rows}: at least {q} (one per weight) and at most {n} rows"
            )
        return self.batch_rows

    def _stream(self, A: Array, T: Array) -> float:
        A, T = np.vstack([self._waiting[0], A]), np.vstack([self._waiting[1], T])
        whole = len(A) // self.batch_rows_ * self.batch_rows_
        self._waiting = (A[whole:], T[whole:])
        skipped = self._pass(A[:whole], T[:whole]) if whole else 0.0
        self._passes = 1  # a stream shows each row once
        return skipped

    def _pass(self, A: Array, T: Array) -> float:
        X, Y = batches(A, self.batch_rows_), batches(T, self.batch_rows_)
        mixed = self._mix(X, Y)
        self._seen += len(X)
        self._used += len(mixed.solutions)
        self._passes += 1
        if len(mixed.solutions):
            self._apply(mixed)
        return mixed.skipped / len(X)

    def _mix(self, X: Array, Y: Array) -> Mixed:
        if self.memory is not None:
            return mix_memory(X, Y, self.memory, self._memory)
        if self.law in ARTICLE and X.shape[1] == X.shape[2]:
            return mix_square(X, Y, eps=self.eps)
        return mix_tall(X, Y)

    def _apply(self, mixed: Mixed) -> None:
        if self.robust:
            self._solutions.append(mixed.solutions)
            self.w_ = np.median(np.concatenate(self._solutions), axis=0)
            self._last = np.ones(len(mixed.solutions))
        elif self.law in ARTICLE:
            gain = standard_gain if self.law == "standard" else adaptive_gain
            self._last = gain(mixed.log_det, self.alpha)
            self.w_, left = blend(self.w_, mixed.solutions, self._last)
            self._left = self._left * left
        elif self.memory is not None:
            # the memory holds all the information: averaging would count it again
            assert mixed.information is not None
            self.w_, self.information_ = mixed.solutions[-1], mixed.information[-1]
            self._spent = self.information_
            self._left = np.zeros(len(self.w_))
            self._last = np.ones(len(mixed.solutions))
        elif self.law == "exact":
            self._last = np.exp(2.0 * (mixed.log_det - mixed.log_det.max()))
            self.w_, self._log_weight = exact_average(
                self.w_, self._log_weight, mixed.solutions, mixed.log_det
            )
        else:
            self._unit_noise(mixed)

    def _unit_noise(self, mixed: Mixed) -> None:
        """``S <- forget S + a;  w <- w + (a / S) (T - w)``, summed over the batches."""
        a = mixed.information
        assert a is not None
        count = len(a)
        old = self.forget ** np.arange(count - 1, -1, -1.0)
        past = self.forget**count
        self._left = self._left * past * self.information_
        self.information_ = past * self.information_ + old @ a
        self._left = self._left / self.information_
        self._spent = past**2 * self._spent + old**2 @ a
        self._sides = past * self._sides + np.einsum("b,bq,bqk->qk", old, a, mixed.solutions)
        self.w_ = self._sides / self.information_[:, None]
        self._last = (old[:, None] * a).mean(axis=1)

    def _current(self) -> Array:
        if not self.finite_time:
            return self.w_
        left = self._left[:, None]
        gone = np.where(left < 1, 1.0 - left, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.where(left < 1, (self.w_ - left * self._w0) / gone, self.w_))

    def _done(self, A: Array, T: Array) -> None:
        if not self._used:
            raise ModelError(
                f"every batch of {self.batch_rows_} rows is singular: give batch_rows more than "
                f"{self.batch_rows_} (integer-coded and sparse columns need tall batches)"
            )
        n, q = A.shape
        w = self._current()
        freedom = max(n - q, 1)
        self.sigma2_ = np.square(T - A @ w).sum(axis=0) / freedom if n > q else np.zeros(T.shape[1])
        if self.law == "unit_noise" and not self.robust:
            noise = self._spent if self.memory is None else self.information_
            shrink = np.maximum(self._passes, 1) * noise / self.information_**2
            self.variance_ = shrink[:, None] * self.sigma2_
        self.diagnostics_ = {
            "skipped": 1.0 - self._used / self._seen,
            "effective_share": self._effective_share(),
            "smallest_distance": float(column_distances(A).min()) if n >= q else np.nan,
        }

    def _effective_share(self) -> float:
        """Return Kish's effective number of batches in the last pass, as a share of them."""
        weights = self._last
        if self.law in ARTICLE:
            with np.errstate(over="ignore", invalid="ignore"):
                keep = np.append(np.cumprod((1.0 - weights)[::-1])[::-1], 1.0)[1:]
                weights = np.abs(weights * keep)
        if not np.isfinite(weights).all() or not weights.any():
            return 0.0
        weights = weights / weights.max()
        return float(weights.sum() ** 2 / np.square(weights).sum() / len(weights))

    def _divergence_hint(self) -> str:
        if self.law != "standard":
            return "the rows hold values too large for floating point"
        worst = float(np.max(self._last, initial=0.0))
        return (
            f"alpha D^2 reaches {worst:.2g} and the law is stable below 2; use law='unit_noise', "
            "law='adaptive' or a much smaller alpha"
        )
