"""When are there enough runs? The stop rule of the weakest pair, and what it lets one claim.

At looks fixed in advance the k best features T are compared with every feature left out. With the
influence values of :mod:`roshap.attribution.influence` and the tolerance ``delta = log(1 + eps)``::

    se_ij = sqrt(2 max(V_i, V_j) - 2 C_ij),    t_min = min over i in T, j not in T of
                                                       (L_i - L_j + delta) / se_ij

and T is settled where ``t_min >= t_{B-1, 1 - alpha / N}``, N being the number of looks. The claim
is then: no feature left out scores more than eps above one taken in; it is wrong in at most a share
alpha of studies, over all looks together. The number of looks that a level is spent on does not
depend on where a study is capped, so that raising the cap later changes no earlier decision.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from roshap.attribution.influence import SAME, Influence, influence
from roshap.errors import ConfigError

#: A first look at fewer runs errs up to 24 % where single runs are outliers (docs/certainty.md).
LOOKS = (70, 100, 150, 200, 300, 500)
MIN_RUNS = LOOKS[0]

#: Largest number of runs that is worth a forecast.
FORECAST_LIMIT = 1_000_000

#: A squared standard error below this share of its parts is rounding: the features are the same.
_ROUNDING = 1e-12

K = int | Literal["auto"]


@dataclass(frozen=True)
class StopRule:
    """What has to be settled, how surely, and when it is looked at.

    Parameters
    ----------
    k
        Size of the set; ``"auto"`` looks for the largest settled one in ``k_range``.
    eps
        Tolerance on the score: 0.1 allows a feature left out to score 10 % more.
    alpha
        Error over all looks (and, with ``"auto"``, over all sizes tried).
    looks
        Numbers of runs, ascending, fixed before the first run.
    k_range
        Smallest and largest size that ``"auto"`` tries.

    Raises
    ------
    ConfigError
        Where a value is out of range.
    """

    k: K = 10
    eps: float = 0.10
    alpha: float = 0.05
    looks: tuple[int, ...] = LOOKS
    k_range: tuple[int, int] = (5, 15)

    def __post_init__(self) -> None:
        if self.k != "auto" and (not isinstance(self.k, int) or self.k < 1):
            raise ConfigError(f"k={self.k!r}: must be 1 or more, or 'auto'")
        if not 0 <= self.eps < math.inf:
            raise ConfigError(f"eps={self.eps}: must be 0 or more")
        if not 0 < self.alpha < 1:
            raise ConfigError(f"alpha={self.alpha}: must be between 0 and 1")
        looks = list(self.looks)
        if not looks or looks[0] < 2 or looks != sorted(set(looks)):
            raise ConfigError(f"looks={looks}: must be ascending numbers of runs from 2")
        low, high = self.k_range
        if not 1 <= low <= high:
            raise ConfigError(f"k_range={[low, high]}: must be two ascending sizes from 1")

    def sizes(self, p: int) -> tuple[int, ...]:
        """Return the sizes that the rule tries on ``p`` features.

        Raises
        ------
        ConfigError
            Where nothing would be left out.
        """
        if self.k == "auto":
            sizes = tuple(k for k in range(self.k_range[0], self.k_range[1] + 1) if k < p)
        else:
            sizes = (self.k,) if self.k < p else ()
        if not sizes:
            wanted = self.k if self.k != "auto" else f"auto, {self.k_range[0]} or more"
            raise ConfigError(
                f"k={wanted}: of {p} features at most {p - 1} can be told from those left out"
            )
        return sizes

    def level(self, n_sizes: int = 1) -> float:
        """Return the error allowed at one look for each of ``n_sizes`` sizes."""
        return self.alpha / len(self.looks) / n_sizes


@dataclass(frozen=True)
class Look:
    """What was seen at one look.

    Attributes
    ----------
    runs
        B.
    k
        The size judged: with ``"auto"`` the largest settled one, or the one nearest to it.
    t_min
        The weakest pair's statistic. None where it is infinite: unsettled where a member has too
        few non-zero runs or is the same as a feature left out, settled where nothing is to chance.
    critical
        What it has to reach.
    settled
        Whether it does.
    weakest
        The pair: member, feature left out.
    """

    runs: int
    k: int
    t_min: float | None
    critical: float
    settled: bool
    weakest: tuple[str, str]


@dataclass(frozen=True)
class Decision:
    """What can be claimed of the k best features, and what cannot.

    Attributes
    ----------
    settled
        Whether the claim holds.
    k
        Of the claim.
    runs
        Runs used.
    eps, alpha
        Of the claim.
    looks
        All looks up to the decision.
    tie_group
        Unless settled: members and features left out that could change places, best first.
    settled_sizes
        Sizes up to 2 k (at least 20) that are settled at this number of runs, with the error
        divided by the number of sizes tried.
    forecast
        Unless settled: runs after which the weakest pair might be, to one digit; None where there
        is no telling.
    planned
        Whether the runs were stopped by the rule; else this is one look at a fixed number of runs.
    """

    settled: bool
    k: int
    runs: int
    eps: float
    alpha: float
    looks: tuple[Look, ...]
    tie_group: tuple[str, ...]
    settled_sizes: tuple[int, ...]
    forecast: int | None
    planned: bool

    @property
    def claim(self) -> str:
        """The claim, or that there is none, in a sentence."""
        if not self.settled:
            return f"the {self.k} best features are not settled after {self.runs} runs"
        over = "over all looks" if self.planned else "at this one look"
        return (
            f"the {self.k} best features are settled after {self.runs} runs: no feature left out "
            f"scores more than {self.eps:.0%} above one taken in "
            f"(error <= {self.alpha:.0%} {over}; for more runs of this pipeline on this data)"
        )

    def lines(self) -> list[str]:
        """Everything a person should read, a line each."""
        lines = [self.claim]
        sizes = _ranges(self.settled_sizes)
        if self.settled:
            return [*lines, f"settled as well: k = {sizes}"] if sizes else lines
        lines.append(f"tie group at k = {self.k}: {', '.join(self.tie_group)}")
        lines.append(f"settled: k = {sizes}" if sizes else "settled: no k")
        if self.forecast is not None:
            lines.append(f"forecast: in the order of {self.forecast} runs, if at all")
        else:
            lines.append("forecast: none, the features of the tie group may really be equal")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as JSON has it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Decision:
        """Return the decision that :meth:`to_dict` gave."""
        looks = tuple(
            Look(**{**look, "weakest": (look["weakest"][0], look["weakest"][1])})
            for look in values["looks"]
        )
        lists = {name: tuple(values[name]) for name in ("tie_group", "settled_sizes")}
        return cls(**{**values, **lists, "looks": looks})


@dataclass(frozen=True)
class Separation:
    """How well the best features are told from the rest.

    Attributes
    ----------
    order
        (p,) features from best to worst.
    t
        (most, p) statistic of each pair, in that order: row i is the (i + 1)-th best feature. Rows
        of features with too few non-zero runs are ``-inf``.
    n_runs
        B.
    """

    order: NDArray[np.intp]
    t: NDArray[np.float64]
    n_runs: int

    def t_min(self, k: int) -> float:
        """Return the statistic of the weakest pair of the k best and the rest."""
        return float(self.t[:k, k:].min())

    def weakest(self, k: int) -> tuple[int, int]:
        """Return the weakest pair: columns of a member and of a feature left out."""
        i, j = np.unravel_index(int(self.t[:k, k:].argmin()), self.t[:k, k:].shape)
        return int(self.order[i]), int(self.order[k + j])

    def ties(self, k: int, critical: float) -> NDArray[np.intp]:
        """Return the columns that could change places across k, best first."""
        open_pairs = self.t[:k, k:] < critical
        members = np.flatnonzero(open_pairs.any(axis=1))
        others = k + np.flatnonzero(open_pairs.any(axis=0))
        return self.order[np.concatenate([members, others])]

    def critical(self, level: float) -> float:
        """Return what a statistic has to reach at an error of ``level``."""
        return float(stats.t.ppf(1 - level, self.n_runs - 1))


def separate(
    S: ArrayLike | Influence, features: Sequence[str], *, most: int, eps: float = 0.10
) -> Separation:
    """Compare the ``most`` best features with all others.

    Parameters
    ----------
    S : array_like of shape (B, p), or its Influence
        Attributions, >= 0.
    features : sequence of str, length p
        Names, which break ties.
    most : int
        Up to which size sets will be judged; below p.
    eps : float
        Tolerance on the score.
    """
    found = S if isinstance(S, Influence) else influence(S)
    order = found.order(features)
    lead = order[:most]
    variance = found.variance
    larger = np.maximum(variance[lead][:, None], variance[order][None, :])
    squared = 2 * larger - 2 * found.covariance(lead, order)
    squared[squared <= _ROUNDING * larger] = 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = found.log_score[lead][:, None] - found.log_score[order][None, :] + math.log1p(eps)
        # two features without spread: nothing is left to chance
        gap[np.isnan(gap)] = np.inf
        t = np.where(squared > 0, gap / np.sqrt(squared), np.where(gap > SAME, np.inf, -np.inf))
    t[~found.sure[lead]] = -np.inf
    return Separation(order, t, found.n_runs)


def look(S: ArrayLike, features: Sequence[str], rule: StopRule) -> tuple[Look, Separation]:
    """Look once, at the runs that there are.

    Returns
    -------
    Look
    Separation
        What it rests on.
    """
    p = np.shape(S)[1]
    sizes = rule.sizes(p)
    found = separate(S, features, most=_most(sizes[-1]), eps=rule.eps)
    critical = found.critical(rule.level(len(sizes)))
    at = {k: found.t_min(k) for k in sizes}
    passed = [k for k in sizes if at[k] >= critical]
    k = passed[-1] if passed else max(sizes, key=lambda size: (at[size], size))
    i, j = found.weakest(k)
    seen = Look(
        runs=found.n_runs,
        k=k,
        t_min=at[k] if math.isfinite(at[k]) else None,
        critical=critical,
        settled=bool(passed),
        weakest=(str(features[i]), str(features[j])),
    )
    return seen, found


def decide(
    S: ArrayLike,
    features: Sequence[str],
    rule: StopRule,
    looks: Sequence[Look] = (),
    *,
    planned: bool = True,
) -> Decision:
    """Say what can be claimed after the last look.

    Parameters
    ----------
    S : array_like of shape (B, p)
        The runs of the last look.
    features : sequence of str, length p
    rule : StopRule
    looks : sequence of Look
        All looks, the one at S last; without them S is looked at now.
    planned : bool
        Whether the rule stopped the runs.
    """
    last, found = look(S, features, rule)
    p = len(features)
    tried = range(1, min(_most(last.k), p - 1) + 1)
    sure = found.critical(rule.level(len(tried)))
    sizes = tuple(k for k in tried if k <= len(found.t) and found.t_min(k) >= sure)
    ties = (
        () if last.settled else tuple(str(features[j]) for j in found.ties(last.k, last.critical))
    )
    return Decision(
        settled=last.settled,
        k=last.k,
        runs=last.runs,
        eps=rule.eps,
        alpha=rule.alpha,
        looks=tuple(looks) or (last,),
        tie_group=ties,
        settled_sizes=tuple(k for k in sizes if k != last.k or not last.settled),
        forecast=None if last.settled else _forecast(last),
        planned=planned,
    )


def judge(S: ArrayLike, features: Sequence[str], rule: StopRule) -> Decision | None:
    """Judge a fixed number of runs by one look at the whole error ``alpha``.

    Returns
    -------
    Decision or None
        None below 70 runs (or the rule's first look, if that is lower): too few to say; or where
        k leaves no feature out.
    """
    n_runs, p = np.shape(S)
    lowest = rule.k if rule.k != "auto" else rule.k_range[0]
    if n_runs < min(MIN_RUNS, rule.looks[0]) or lowest >= p:
        return None
    return decide(S, features, replace(rule, looks=(n_runs,)), planned=False)


def decision_of(meta: Mapping[str, Any]) -> Decision | None:
    """Return the decision that stopped a bootstrap, from the ``meta`` of its attributions."""
    found = (meta.get("stop") or {}).get("decision")
    return None if found is None else Decision.from_dict(found)


def _most(k: int) -> int:
    """Largest size about which something is said besides k."""
    return max(20, 2 * k)


def _forecast(last: Look) -> int | None:
    """Return the runs that would tell the weakest pair apart: its t grows as sqrt(B)."""
    if last.t_min is None or last.t_min <= 0:
        return None
    wanted = last.runs * (last.critical / last.t_min) ** 2
    digit = 10 ** math.floor(math.log10(wanted))
    rounded = math.ceil(wanted / digit) * digit
    return rounded if rounded <= FORECAST_LIMIT else None


def _ranges(numbers: Sequence[int]) -> str:
    """Write ascending numbers in short: ``1-3, 7``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)
