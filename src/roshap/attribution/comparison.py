"""Two rankings side by side: which places changed by more than refitting alone would change them.

Both rankings come from bootstrap runs, so both move when the runs are drawn again. Resampling whole
runs on each side, and ranking again, gives the distribution of a feature's change of rank under
that noise. With ``d`` the observed change and ``d*`` the resampled ones, centred at their median,

    p_noise = (1 + #{|d* - median(d*)| >= |d|}) / (1 + resamples)

is the probability that noise alone moves the feature as far, and ``1 - p_noise`` is shown as the
probability that the change is more than refit noise (ours). Where both sides drew the same bags,
the same runs are resampled on both: what a bag does to both rankings is then no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import spearmanr

from roshap.attribution.score import score
from roshap.errors import DataError

#: Runs on either side below which no probability is given: a rank's noise is not known from fewer.
MIN_RUNS = 20
RESAMPLES = 400

#: Columns of the table, each with a sentence for a reader.
COMPARISON_GLOSSARY: dict[str, str] = {
    "feature": "Name of the feature.",
    "rank_a": "Place in A among the features of both.",
    "rank_b": "Place in B among the features of both.",
    "change": "Places gained from A to B; negative where the feature fell.",
    "roshap_a": "Score in A. Scores of different models or units are not comparable.",
    "roshap_b": "Score in B.",
    "noise": "Standard deviation of the change by refitting alone, in places.",
    "beyond_noise": (
        "Probability that the change is more than refit noise: 1 - the share of resampled changes "
        f"that are as large. Empty below {MIN_RUNS} runs on either side."
    ),
}


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare_rankings` found.

    Attributes
    ----------
    table
        One row per feature of both, in the order of B, with :data:`COMPARISON_GLOSSARY`'s columns.
    only_a, only_b
        Features that the other side does not have.
    paired
        Whether the same runs were resampled on both sides.
    spearman
        Rank correlation over the features of both; NaN for fewer than two.
    """

    table: pd.DataFrame
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    paired: bool
    spearman: float

    def overlap(self, k: int) -> float:
        """Return the share of A's first ``k`` features that are among B's first ``k``."""
        k = min(k, len(self.table))
        both = (self.table["rank_a"] <= k) & (self.table["rank_b"] <= k)
        return float(both.sum() / k) if k else float("nan")


def compare_rankings(
    S_a: NDArray[np.floating],
    features_a: Sequence[str],
    S_b: NDArray[np.floating],
    features_b: Sequence[str],
    *,
    rng: np.random.Generator,
    paired: bool = False,
    resamples: int = RESAMPLES,
) -> Comparison:
    """Compare two bootstraps' rankings over the features that both have.

    Parameters
    ----------
    S_a, S_b : ndarray of shape (B_a, p_a), (B_b, p_b)
        Attributions, >= 0, at least two runs each.
    paired : bool
        Whether run b of both sides drew the same bag; needs ``B_a == B_b``.
    resamples : int
        Resamples of whole runs.

    Raises
    ------
    DataError
        If no feature is on both sides, or runs cannot be paired.
    """
    if paired and len(S_a) != len(S_b):
        raise DataError(f"runs cannot be paired: {len(S_a)} in A, {len(S_b)} in B")
    in_b = set(features_b)
    names = [name for name in features_a if name in in_b]
    if not names:
        raise DataError("the two rankings have no feature in common")
    left = _columns(S_a, features_a, names)
    right = _columns(S_b, features_b, names)
    rank_a, score_a = _ranks(left, names)
    rank_b, score_b = _ranks(right, names)
    table = pd.DataFrame(
        {
            "feature": pd.Series(names, dtype="str"),
            "rank_a": rank_a,
            "rank_b": rank_b,
            "change": rank_a - rank_b,
            "roshap_a": np.where(np.isinf(score_a), np.nan, score_a),
            "roshap_b": np.where(np.isinf(score_b), np.nan, score_b),
            "noise": np.nan,
            "beyond_noise": np.nan,
        }
    )
    if min(len(left), len(right)) >= MIN_RUNS:
        changes = _resampled(left, right, names, paired=paired, resamples=resamples, rng=rng)
        table["noise"] = changes.std(axis=0, ddof=1)
        centred = np.abs(changes - np.median(changes, axis=0))
        as_large = (centred >= np.abs(table["change"].to_numpy())).sum(axis=0)
        table["beyond_noise"] = 1 - (1 + as_large) / (1 + resamples)
    known_a = set(features_a)
    return Comparison(
        table=table.sort_values("rank_b", ignore_index=True)[list(COMPARISON_GLOSSARY)],
        only_a=tuple(name for name in features_a if name not in in_b),
        only_b=tuple(name for name in features_b if name not in known_a),
        paired=paired,
        spearman=float(spearmanr(rank_a, rank_b).statistic) if len(names) > 1 else float("nan"),
    )


def _columns(
    S: NDArray[np.floating], features: Sequence[str], names: Sequence[str]
) -> NDArray[np.float64]:
    place = {name: column for column, name in enumerate(features)}
    return np.asarray(S, dtype=np.float64)[:, [place[name] for name in names]]


def _ranks(
    S: NDArray[np.float64], names: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the place of each feature, as in a ranking, and its score."""
    scored = score(S)
    order = np.lexsort((np.asarray(names), -scored.mean, -scored.roshap))
    ranks = np.empty(len(names), dtype=np.int64)
    ranks[order] = np.arange(1, len(names) + 1)
    return ranks, scored.roshap


def _resampled(
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    names: Sequence[str],
    *,
    paired: bool,
    resamples: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return the changes of rank over resampled runs, (resamples, p)."""
    changes = np.empty((resamples, len(names)), dtype=np.int64)
    for one in range(resamples):
        rows_a = rng.integers(len(left), size=len(left))
        rows_b = rows_a if paired else rng.integers(len(right), size=len(right))
        changes[one] = _ranks(left[rows_a], names)[0] - _ranks(right[rows_b], names)[0]
    return changes
