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
from roshap.attribution.groups import nine_digits, unit_names
from roshap.attribution.influence import influence
from roshap.attribution.intervals import certainty, told_apart
from roshap.attribution.randomness import shares
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
    "roshap_low": (
        "Lower end of the 95 % interval of the score, for more runs of this pipeline on this data. "
        "Empty below 5 non-zero runs."
    ),
    "roshap_high": (
        "Upper end of the 95 % interval of the score, for more runs of this pipeline on this data. "
        "Empty below 5 non-zero runs."
    ),
    "rank_low": (
        "Best place that the feature could have at 95 % (each feature for itself), for more runs "
        "of this pipeline on this data. Empty below 20 runs."
    ),
    "rank_high": (
        "Worst place that the feature could have at 95 % (each feature for itself), for more runs "
        "of this pipeline on this data. Empty below 20 runs."
    ),
    "p_top_k": (
        "Probability that the feature is among the k best (k: selection.k, 10 by default) with as "
        "many new runs of this pipeline on this data; right within 10 points. Empty below 20 runs."
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
    "roshap_corrected": (
        "The score without its upward bias at few runs (about 10 % at 10 runs for features that "
        "are always used). One factor for all: it never changes a ranking."
    ),
    "rank_low_all": (
        "Best place, the intervals of the 50 leading features holding all at once at 95 %. Empty "
        "for others and below 20 runs."
    ),
    "rank_high_all": (
        "Worst place, the intervals of the 50 leading features holding all at once at 95 %. Empty "
        "for others and below 20 runs."
    ),
    "p_swap_next": (
        "Probability that the next feature in the table is really the better one; below 0.3 it is "
        "3-6 points too low. Empty below 20 runs and in the last row."
    ),
    "data_share": (
        "Share of the attribution's variance that comes from the data drawn, the rest from the "
        "model's seed given the data. Empty without bootstrap.randomness."
    ),
    "group": "Collinear group that the feature belongs to, named after its leading member.",
    "group_rank": "Place of the group in the ranking of groups; empty for a feature by itself.",
    "interchangeable": (
        "The feature's place inside its group is not settled, or another column is its exact copy."
    ),
    "copies": "Columns with exactly the same values.",
}
COLUMNS = tuple(GLOSSARY)

TableName = Literal["ranking", "classes", "groups"]

#: Columns of a ranking of groups, in their order.
GROUP_GLOSSARY: dict[str, str] = {
    "rank": "Place of the group, or of the feature that is in no group.",
    "group": "Name: of the leading member and how many more there are, or of the feature.",
    "size": "Number of members.",
    "members": "The members with their shares of the members' summed mean attributions.",
    "copies": "Members with exactly the same values.",
    **{name: GLOSSARY[name] for name in ("roshap", "roshap_low", "roshap_high")},
    **{name: GLOSSARY[name] for name in ("rank_low", "rank_high", "p_top_k", "p0")},
}

#: The column that a per-class ranking has in front.
CLASS_GLOSSARY = {"class": "The class whose attributions are ranked."}


def rank(
    S: ArrayLike,
    features: Sequence[str],
    rows: RowMoments | None = None,
    *,
    output: int = 0,
    k: int = 10,
    seed: int = 0,
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
    k : int
        Size of the top set that ``p_top_k`` is about.
    seed : int
        The study's seed, for the resamples behind intervals.

    Returns
    -------
    DataFrame
        p rows, best feature first, with the columns of :data:`GLOSSARY`. Those on groups and on
        the model's seed are empty: :func:`rank_attributions` knows these.

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
    sure = certainty(S, names, k=k, seed=seed)
    table = pd.concat([table, shape.rename(columns={"label": "distribution"}), sure], axis=1)
    table = table.assign(data_share=np.nan, group="", interchangeable=False, copies="")
    table["group_rank"] = pd.array([pd.NA] * len(table), dtype="Int64")
    table = table.sort_values(
        ["roshap", "mean", "feature"], ascending=[False, False, True], ignore_index=True
    )
    table["rank"] = np.arange(1, len(table) + 1)
    # A file holds no infinity: the flag says why these places are empty.
    table.loc[table["deterministic"], ["roshap", "stability"]] = np.nan
    text = dict.fromkeys(("feature", "distribution", "summary", "group", "copies"), "str")
    return table[list(COLUMNS)].astype(text)


def rank_attributions(attributions: Attributions, *, k: int = 10) -> pd.DataFrame:
    """Rank the features of a bootstrap: with K > 1 classes, by the mean of S over the classes.

    Parameters
    ----------
    attributions
        With their groups and the runs of a second model seed, where there are any.
    k
        Size of the top set that ``p_top_k`` is about.

    Returns
    -------
    DataFrame
        As :func:`rank`. With K > 1 the row diagnostics are empty: they belong to single classes.
    """
    single = attributions.S.shape[2] == 1
    table = rank(
        attributions.scores,
        attributions.features,
        attributions.rows if single else None,
        k=k,
        seed=_seed(attributions),
    ).set_index("feature", drop=False)
    if attributions.second_seed is not None:
        draws = len(attributions.second_seed)
        again = attributions.second_seed.mean(axis=2)
        found = shares(attributions.scores[:draws], again)
        table["data_share"] = pd.Series(found.share, index=list(attributions.features))
    if attributions.groups is not None and attributions.groups.members:
        _mark_groups(table, attributions, k)
    return table.reset_index(drop=True)


def _seed(attributions: Attributions) -> int:
    return int(attributions.meta.get("seed", 0))


def _mark_groups(table: pd.DataFrame, attributions: Attributions, k: int) -> None:
    """Fill in the columns on groups; the table is indexed by feature."""
    groups, features = attributions.groups, attributions.features
    assert groups is not None
    found = influence(attributions.scores)
    places = rank_groups(attributions, k=k).set_index("group")["rank"]
    for name, members in zip(_unit_names(attributions), groups.members, strict=True):
        mine = [features[j] for j in members]
        apart = told_apart(found, members)
        np.fill_diagonal(apart, True)
        table.loc[mine, "group"] = name
        table.loc[mine, "group_rank"] = int(places[name])
        unsettled = [name for name, row in zip(mine, apart, strict=True) if not row.all()]
        table.loc[unsettled, "interchangeable"] = True
    for same in groups.copies:
        names = [features[j] for j in same]
        table.loc[names, "interchangeable"] = True
        for name in names:
            table.loc[name, "copies"] = ", ".join(other for other in names if other != name)


def _unit_names(attributions: Attributions) -> list[str]:
    """Name the groups, no name being a feature's."""
    assert attributions.groups is not None
    scored = score(attributions.scores)
    strength = {j: float(value) for j, value in enumerate(scored.roshap)}
    names = unit_names(attributions.features, attributions.groups.members, strength)
    taken = set(attributions.features)
    return [f"{name} group" if name in taken else name for name in names]


def rank_groups(attributions: Attributions, *, k: int = 10) -> pd.DataFrame:
    """Rank groups of collinear features as wholes, among the features that are in no group.

    Parameters
    ----------
    attributions
        With groups.
    k
        Size of the top set that ``p_top_k`` is about.

    Returns
    -------
    DataFrame
        A row for each group and each feature by itself, best first, with the columns of
        :data:`GROUP_GLOSSARY`.

    Raises
    ------
    DataError
        Where the attributions have no groups.
    """
    groups, features = attributions.groups, attributions.features
    if groups is None:
        raise DataError("these attributions have no groups: set bootstrap.groups_threshold")
    scores, names = attributions.scores, _unit_names(attributions)
    grouped = {j for members in groups.members for j in members}
    alone = [j for j in range(len(features)) if j not in grouped]
    S = np.concatenate([groups.scores, scores[:, alone]], axis=1)
    table = rank(S, [*names, *(features[j] for j in alone)], k=k, seed=_seed(attributions))
    table = table.drop(columns="group").rename(columns={"feature": "group"})
    members = dict(zip(names, groups.members, strict=True))
    copies = [{features[j] for j in same} for same in groups.copies]
    mean = scores.mean(axis=0)
    about = {
        name: (
            len(mine),
            _describe_members(features, mine, mean),
            _describe_copies([features[j] for j in mine], copies),
        )
        for name, mine in members.items()
    }
    units = table["group"].tolist()
    table["size"] = [about[unit][0] if unit in about else 1 for unit in units]
    table["members"] = [about[unit][1] if unit in about else unit for unit in units]
    table["copies"] = [about[unit][2] if unit in about else "" for unit in units]
    text = dict.fromkeys(("group", "members", "copies"), "str")
    return table[list(GROUP_GLOSSARY)].astype(text)


def _describe_members(features: Sequence[str], members: Sequence[int], mean: np.ndarray) -> str:
    total = float(mean[list(members)].sum())
    ordered = sorted(members, key=lambda j: (-nine_digits(float(mean[j])), features[j]))
    shown = (mean[j] / total if total > 0 else 0.0 for j in ordered)
    return ", ".join(f"{features[j]} {share:.0%}" for j, share in zip(ordered, shown, strict=True))


def _describe_copies(members: Sequence[str], copies: Sequence[set[str]]) -> str:
    inside = (sorted(same) for same in copies if same & set(members))
    return "; ".join(" = ".join(same) for same in inside)


def rank_classes(attributions: Attributions, *, k: int = 10) -> pd.DataFrame:
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
            attributions.S[:, :, output],
            attributions.features,
            attributions.rows,
            output=output,
            k=k,
            seed=_seed(attributions),
        )
        table.insert(0, "class", pd.Series([label] * len(table), dtype="str"))
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def write_ranking(
    table: pd.DataFrame, directory: Path, *, name: TableName = "ranking"
) -> list[Path]:
    """Write a ranking as parquet and CSV, whole or not at all, and byte for byte repeatably.

    Parameters
    ----------
    table : DataFrame
        Of :func:`rank`, :func:`rank_classes` or :func:`rank_groups`.
    directory : Path
        Made where it does not exist.
    name : str
        ``ranking`` for the ranking, ``classes`` for the rankings per class, ``groups`` for that
        of collinear groups.

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


def read_ranking(directory: Path, *, name: TableName = "ranking") -> pd.DataFrame:
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
    wanted = tuple(GROUP_GLOSSARY) if name == "groups" else COLUMNS
    missing = [column for column in wanted if column not in table.columns]
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
