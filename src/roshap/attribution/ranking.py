"""The ranking table: every feature with its score, the factors of it, and how it is distributed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from roshap.attribution.attributions import Attributions
from roshap.attribution.distribution import RowMoments, describe
from roshap.attribution.score import score
from roshap.compute.files import write_bytes
from roshap.errors import DataError

#: Columns of a ranking, in their order, each with a sentence for a reader.
GLOSSARY: dict[str, str] = {
    "rank": "Place of the feature: by score, then by mean, then by name.",
    "feature": "Name of the feature, as in the table.",
    "roshap": (
        "The score, activity x strength x stability, in the units of the attribution. Empty for "
        "a deterministic feature, which ranks above all scores."
    ),
    "p0": "Share of runs in which the attribution is exactly zero.",
    "activity": "1 - p0, the share of runs that use the feature.",
    "strength": "Median attribution over the runs that use the feature.",
    "stability": (
        "Mean over standard deviation of the attribution, all runs; no units. Empty for a "
        "deterministic feature."
    ),
    "mean": "Mean attribution over all runs.",
    "sd": "Standard deviation of the attribution over all runs (ddof = 1).",
    "distribution": (
        "Shape of the non-zero runs: 'gaussian-like' where their L-moment ratios are within 0.1 "
        "of the normal's, else 'skewed/heavy'; 'shape unknown' below 20 non-zero runs; "
        "'constant' without spread; 'all zero'."
    ),
    "summary": (
        "How to report the attribution: 'gaussian' (mean and sd suffice), 'kde' (density of the "
        "non-zero runs, p0 apart), 'mean and sd' (too few runs for a shape), 'constant', 'zero'."
    ),
    "deterministic": "Every run gave the same non-zero attribution: there is no spread.",
    "p0_low": "Lower end of the 95 % Wilson interval of p0, for more runs on the same data.",
    "p0_high": "Upper end of the 95 % Wilson interval of p0, for more runs on the same data.",
    "skewness": "Skewness of the non-zero runs (bias-corrected); 0 for a symmetric shape.",
    "tau3": "L-skewness of the non-zero runs; 0 for the normal distribution.",
    "tau4": "L-kurtosis of the non-zero runs; 0.1226 for the normal distribution.",
    "lyapunov": (
        "Lyapunov ratio of the sum over rows; near 0 where many independent rows make the sum "
        "near-normal."
    ),
    "max_row_share": "Largest single row's share of the variance of the rows.",
    "row_share_used": (
        "Share of the rows behind lyapunov and max_row_share; below 1 they are estimates."
    ),
}
COLUMNS = tuple(GLOSSARY)

#: The column that a per-class ranking has in front.
CLASS_GLOSSARY = {"class": "The class whose attributions are ranked."}


def rank(
    S: ArrayLike,
    features: Sequence[str],
    rows: RowMoments | None = None,
    *,
    output: int = 0,
) -> pd.DataFrame:
    """Rank features by their RoSHAP score.

    Deterministic features (the same non-zero value in every run) come first. Ties are broken by
    the mean, then by name: the order of the columns of S never matters.

    Parameters
    ----------
    S : array_like of shape (B, p)
        Attributions of one output, >= 0; B >= 2.
    features : sequence of str, length p
        Unique names.
    rows : RowMoments, optional
        Sums over rows of the same bootstrap, for the Lyapunov diagnostics.
    output : int
        Which of the K outputs of ``rows`` S belongs to.

    Returns
    -------
    DataFrame
        p rows, best feature first, with the columns of :data:`GLOSSARY`.

    Raises
    ------
    DataError
        If S, the names or ``rows`` are unfit.
    """
    scored = score(S)
    names = _check_names(features, len(scored.roshap))
    table = pd.DataFrame(
        {
            "feature": pd.Series(names, dtype=object),
            "roshap": scored.roshap,
            "p0": scored.p0,
            "activity": scored.activity,
            "strength": scored.strength,
            "stability": scored.stability,
            "mean": scored.mean,
            "sd": scored.sd,
            "deterministic": scored.deterministic,
        }
    )
    shape = describe(S, rows, output=output).to_frame()
    table = pd.concat([table, shape.rename(columns={"label": "distribution"})], axis=1)
    table = table.sort_values(
        ["roshap", "mean", "feature"], ascending=[False, False, True], ignore_index=True
    )
    table["rank"] = np.arange(1, len(table) + 1)
    # A file holds no infinity: the flag says why these places are empty.
    table.loc[table["deterministic"], ["roshap", "stability"]] = np.nan
    text = dict.fromkeys(("feature", "distribution", "summary"), "str")
    return table[list(COLUMNS)].astype(text)


def rank_attributions(attributions: Attributions) -> pd.DataFrame:
    """Rank the features of a bootstrap: with K > 1 classes, by the mean of S over the classes.

    Returns
    -------
    DataFrame
        As :func:`rank`. With K > 1 the row diagnostics are empty: they belong to single classes.
    """
    single = attributions.S.shape[2] == 1
    return rank(attributions.scores, attributions.features, attributions.rows if single else None)


def rank_classes(attributions: Attributions) -> pd.DataFrame:
    """Rank the features of a multi-class bootstrap for each class, by that class's own S.

    Returns
    -------
    DataFrame
        K x p rows, class after class, with ``class`` in front of the columns of :func:`rank`.

    Raises
    ------
    DataError
        If there are no classes (binary classification and regression have one ranking).
    """
    if not attributions.classes:
        raise DataError("only a multi-class bootstrap has rankings per class: this has one output")
    tables = []
    for output, label in enumerate(attributions.classes):
        table = rank(
            attributions.S[:, :, output], attributions.features, attributions.rows, output=output
        )
        table.insert(0, "class", pd.Series([label] * len(table), dtype="str"))
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def write_ranking(
    table: pd.DataFrame, directory: Path, *, name: Literal["ranking", "classes"] = "ranking"
) -> list[Path]:
    """Write a ranking as parquet and CSV, whole or not at all, and byte for byte repeatably.

    Parameters
    ----------
    table : DataFrame
        Of :func:`rank` or :func:`rank_classes`.
    directory : Path
        Made where it does not exist.
    name : str
        ``ranking`` for the ranking, ``classes`` for the rankings per class.

    Returns
    -------
    list of Path
        ``<name>.parquet`` and ``<name>.csv``.

    Raises
    ------
    OutputError
        If the directory cannot be written.
    """
    parquet = io.BytesIO()
    table.to_parquet(parquet, index=False, engine="pyarrow")
    contents = {
        directory / f"{name}.parquet": parquet.getvalue(),
        directory / f"{name}.csv": table.to_csv(index=False, lineterminator="\n").encode(),
    }
    for path, content in contents.items():
        write_bytes(path, content)
    return list(contents)


def read_ranking(
    directory: Path, *, name: Literal["ranking", "classes"] = "ranking"
) -> pd.DataFrame:
    """Read what :func:`write_ranking` wrote, with the same values and types.

    Raises
    ------
    DataError
        If the file is missing, damaged or no ranking.
    """
    path = directory / f"{name}.parquet"
    try:
        table = pd.read_parquet(path, engine="pyarrow")
    except FileNotFoundError as error:
        raise DataError(f"no ranking in {directory}: {path.name} is missing") from error
    except (OSError, ValueError) as error:
        raise DataError(f"the ranking {path} cannot be read: {error}") from error
    missing = [column for column in COLUMNS if column not in table.columns]
    if missing:
        raise DataError(f"{path} is no ranking: columns {', '.join(missing)} are missing")
    return table


def _check_names(features: Sequence[str], p: int) -> list[str]:
    names = [str(name) for name in features]
    if len(names) != p:
        raise DataError(f"{len(names)} feature names for attributions of {p} features")
    if len(set(names)) != p:
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"feature names must be unique, but {twice!r} appears more than once")
    return names
