"""Rules that choose the regularisation parameter, each from the curve of a path.

Sources: Morozov (1966) for the discrepancy principle; Golub, Heath, Wahba (1979) for GCV; Hansen
(1992) for the L-curve; Tikhonov, Glasko (1965) and Kindermann (2011) for quasi-optimality.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from roshap.regression.spectral.errors import SpectralError
from roshap.regression.spectral.filters import Array
from roshap.regression.spectral.spectrum import Path

#: The L-curve has arrived at its end where its logarithms change less than this per level.
_ARRIVED = 0.01
#: Logarithms of norms that change less than this from level to level are rounding.
_STILL = 1e-8


@dataclass(frozen=True)
class Choice:
    """What a rule chose, from which curve, and what speaks against it.

    Attributes
    ----------
    rule : str
    index : int
        Place on the path.
    value : float
        The level there.
    curve : ndarray of shape (L,)
        What the rule looked at; NaN where it did not look. See ``goal`` for what it wants of it.
    goal : str
        "smallest", "largest" (curvature) or "first below tau delta" (residual norm).
    warning : str or None
        Says so where the optimum sits at an end of the path, or where there was no choice.
    """

    rule: str
    index: int
    value: float
    curve: Array
    goal: str = "smallest"
    warning: str | None = None


def discrepancy(path: Path, delta: float | None, tau: float = 1.0) -> Choice:
    """Take the smoothest solution with ``||r|| <= tau delta``.

    Parameters
    ----------
    path : Path
    delta : float
        Norm of the noise in the data.
    tau : float
        Safety factor of at least 1.
    """
    if delta is None:
        raise SpectralError("the discrepancy principle needs the level of the noise")
    if not (np.isfinite(delta) and delta >= 0):
        raise SpectralError(f"the level of the noise must be finite and not negative: {delta:g}")
    if not (np.isfinite(tau) and tau >= 1):
        raise SpectralError(f"tau={tau:g}: must be at least 1")
    curve = path.residual_norm
    below = np.flatnonzero(curve <= tau * delta)
    index = int(below[0]) if len(below) else len(path) - 1
    warning = None
    if not len(below):
        warning = (
            f"no solution on the path has a residual below tau delta = {tau * delta:g}: the last "
            "one is taken; the noise may be larger than said"
        )
    elif index == 0:
        warning = _at_end(path, 0)
    goal = "first below tau delta"
    return Choice("discrepancy", index, float(path.levels[index]), curve, goal, warning)


def gcv(path: Path) -> Choice:
    """Take the smallest generalised cross-validation score.

    Levels with more degrees of freedom than the filter's ``gcv_share`` allows are left out: there
    the score falls towards 0/0.
    """
    usable = path.dof <= max(path.gcv_share * path.n, 1.0)
    return _smallest("gcv", path, np.where(usable, path.gcv, np.nan))


def l_curve(path: Path) -> Choice:
    """Take the corner of ``log ||x||`` against ``log ||r||``: the largest positive curvature.

    The curve runs from smooth to rough: first to the left, then upwards. A turn from left to
    upwards has positive curvature in the sign used here, ``x'' y' - x' y''``; the ends are left
    out.
    """
    curve = np.full(len(path), np.nan)
    if len(path) >= 5:
        place = _position(path)
        tiny = np.finfo(np.float64).tiny
        x = np.log(np.maximum(path.residual_norm, tiny))
        y = np.log(np.maximum(path.solution_norm, tiny))
        dx, dy = np.gradient(x, place), np.gradient(y, place)
        ddx, ddy = np.gradient(dx, place), np.gradient(dy, place)
        speed = (dx**2 + dy**2) ** 1.5
        # slow is where the corner lies; but where the curve stands still its curvature is noise
        moving = speed > _STILL**3
        curvature = (ddx * dy - dx * ddy) / np.where(moving, speed, 1.0)
        # where the curve ends in a point, the naive solution, it shrinks and seems to turn
        alive = np.flatnonzero(np.hypot(np.diff(x), np.diff(y)) > _ARRIVED)
        inner = np.arange(2, min(len(path) - 2, alive[-1] if len(alive) else 0))
        curve[inner] = np.where(moving, curvature, np.nan)[inner]
    if not np.any(curve > _STILL):
        return _nothing("l_curve", path, curve, "the L-curve has no corner", "largest")
    index = int(np.nanargmax(curve))
    return Choice("l_curve", index, float(path.levels[index]), curve, "largest")


def quasi_optimality(path: Path) -> Choice:
    """Take the solution that changes least along the path, between changes that are larger.

    Only interior minima count: towards heavy smoothing the solution stops changing as well.
    """
    curve = path.change
    inner = np.arange(len(path))[2:-1]
    with np.errstate(invalid="ignore"):
        lower = (curve[inner] < curve[inner - 1]) & (curve[inner] <= curve[inner + 1])
    # where nothing is left to fit the solution stands still, up to rounding
    moving = curve[inner] > _STILL * path.solution_norm[inner]
    valleys = inner[lower & moving]
    if not len(valleys):
        return _nothing("quasi_optimality", path, curve, "the change has no interior minimum")
    index = int(valleys[np.argmin(curve[valleys])])
    return Choice("quasi_optimality", index, float(path.levels[index]), curve)


def leave_one_out(path: Path) -> Choice:
    """Take the smallest leave-one-out mean squared error."""
    return _smallest("loo", path, _given(path.loo, "loo"))


def leave_one_out_error(path: Path) -> Choice:
    """Take the smallest leave-one-out classification error; ties go to the smaller squared one."""
    curve = _given(path.loo_error, "loo_error")
    plain = _smallest("loo_error", path, curve)
    if np.ptp(curve) == 0:
        return plain
    squared = np.nan_to_num(_given(path.loo, "loo"), nan=np.inf)
    index = int(np.argmin(np.where(curve == np.min(curve), squared, np.inf)))
    warning = _at_end(path, index) if index in (0, len(path) - 1) else None
    return Choice("loo_error", index, float(path.levels[index]), curve, warning=warning)


def k_fold(path: Path) -> Choice:
    """Take the smallest mean loss over folds."""
    return _smallest("kfold", path, _given(path.kfold, "kfold"))


#: The rules by name; ``discrepancy`` needs the noise as well.
RULES: dict[str, Callable[[Path], Choice]] = {
    "gcv": gcv,
    "l_curve": l_curve,
    "quasi_optimality": quasi_optimality,
    "loo": leave_one_out,
    "loo_error": leave_one_out_error,
    "kfold": k_fold,
}
RULE_NAMES = ("discrepancy", *RULES)


def check_rule(rule: str) -> str:
    """Return the rule's name.

    Raises
    ------
    SpectralError
        For an unknown one.
    """
    if rule not in RULE_NAMES:
        raise SpectralError(f"unknown rule {rule!r} (valid: {', '.join(RULE_NAMES)})")
    return rule


def choose(path: Path, rule: str, *, delta: float | None = None, tau: float = 1.0) -> Choice:
    """Apply a rule by name to a path."""
    check_rule(rule)
    return discrepancy(path, delta, tau) if rule == "discrepancy" else RULES[rule](path)


def _position(path: Path) -> Array:
    """Return where each level lies: logarithms, but components one after the other."""
    if path.parameter == "components":
        return np.arange(len(path), dtype=np.float64)
    return np.abs(np.log(np.maximum(path.levels, np.finfo(np.float64).tiny)))


def _given(curve: Array | None, rule: str) -> Array:
    if curve is None:
        raise SpectralError(f"the rule {rule!r} is not available for this kind of problem")
    return curve


def _smallest(rule: str, path: Path, curve: Array) -> Choice:
    usable = np.isfinite(curve)
    if not usable.any():
        return _nothing(rule, path, curve, "the score is not defined anywhere on the path")
    index = int(np.argmin(np.where(usable, curve, np.inf)))
    level = float(path.levels[index])
    looked = np.flatnonzero(~np.isnan(curve))
    flat = np.ptp(curve[usable]) <= 1e-12 * abs(float(curve[usable].max()))
    if flat and len(path) > 1:
        # nothing distinguishes the levels: the smoothest is the safe one
        index = int(np.flatnonzero(usable)[0])
        return _nothing(rule, path, curve, "the score is the same on the whole path", index=index)
    at_end = len(looked) > 1 and index in (looked[0], looked[-1])
    return Choice(rule, index, level, curve, warning=_at_end(path, index) if at_end else None)


def _nothing(
    rule: str, path: Path, curve: Array, why: str, goal: str = "smallest", index: int = 0
) -> Choice:
    level = float(path.levels[index])
    warning = f"{why}: the smoothest solution ({path.parameter}={level:g}) is taken"
    return Choice(rule, index, level, curve, goal, warning if len(path) > 1 else None)


def _at_end(path: Path, index: int) -> str:
    first, last = path.levels[0], path.levels[-1]
    return (
        f"the optimum sits at an end of the path, {path.parameter}={path.levels[index]:g} "
        f"(looked at {first:g} to {last:g}): widen `levels`, or distrust the rule here"
    )
