"""What the bootstrap leaves behind: attributions per run, feature and output, and row summaries."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from roshap.compute.files import write_json, writing
from roshap.errors import DataError

Aggregate = Literal["sum", "mean"]

RUNS_FILE = "attributions.npz"
ROWS_FILE = "rows.npz"
GROUPS_FILE = "groups.npz"
SECOND_SEED_FILE = "second_seed.npz"
META_FILE = "attributions.json"
FORMAT = {"type": "roshap.attributions", "version": 1}


@dataclass(frozen=True)
class RowSummaries:
    """The distribution of each row's attributions over the runs in which it was out of bag (OOB).

    Attributes
    ----------
    rows
        (m,) rows of the table that are summarised, ascending; m = n unless memory forbids.
    n_oob
        (m,) runs in which the row was OOB.
    mean, sd, p0
        (m, p, K) mean, standard deviation (ddof = 1) and share of exact zeros of the signed
        attribution over those runs; NaN where there are too few runs.
    quantiles
        (m, p, K, 3) quantiles at :attr:`levels`, linear between order statistics.
    var_sum, abs3_sum, var_max
        (p, K) sums and maximum over the rows of the moments that Lyapunov's condition needs
        (attribution.md, section 1). With x_ib = weight * |attribution| of row i in run b, 0 where
        the row was in the bag, and over all B runs: sum of variances, sum of mean |x - mean|^3,
        largest variance.
    n_rows_total
        n, the training rows of the table.
    """

    rows: np.ndarray
    n_oob: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    p0: np.ndarray
    quantiles: np.ndarray
    var_sum: np.ndarray
    abs3_sum: np.ndarray
    var_max: np.ndarray
    n_rows_total: int
    levels: tuple[float, float, float] = (0.05, 0.5, 0.95)

    @property
    def complete(self) -> bool:
        """Whether every row of the table is summarised."""
        return len(self.rows) == self.n_rows_total


@dataclass(frozen=True)
class GroupAttributions:
    """Attributions of groups of collinear features as wholes.

    Attributes
    ----------
    threshold
        Mean absolute rank correlation down to which features were joined.
    members
        Columns of each of the G groups.
    copies
        Columns of each set of identical columns.
    S
        (B, G, K) sum over a run's out-of-bag rows of |sum of the members' attributions|, in the
        units and with the aggregate of the features' S.
    row_share
        Share of the rows behind S; below 1 it is scaled up from a sample of the rows.
    """

    threshold: float
    members: tuple[tuple[int, ...], ...]
    copies: tuple[tuple[int, ...], ...]
    S: np.ndarray
    row_share: float

    @property
    def scores(self) -> np.ndarray:
        """(B, G) one number per run and group, as :attr:`Attributions.scores`."""
        return self.S[:, :, 0] if self.S.shape[2] == 1 else self.S.mean(axis=2)


@dataclass(frozen=True)
class Attributions:
    """Attributions of B bootstrap runs (Algorithm 1 of arXiv 2605.15154).

    Attributes
    ----------
    S
        (B, p, K) sum over a run's OOB rows of |attribution| per feature and output, in units of
        :attr:`space`; K is 1 for binary classification and regression, else the number of classes.
    aggregate
        ``"sum"`` as in the paper, or ``"mean"``: divided by the number of OOB rows (by the sum of
        their weights where rows have weights).
    features
        Names of the p features.
    classes
        Labels of the K outputs where K > 1, else empty.
    n_oob, redraws
        (B,) OOB rows of each run, and samples thrown away before it.
    explainer, space
        The routine that computed the attributions, and their units.
    rows
        Summaries per row; None where they were switched off.
    meta
        How it was made: seed, settings, model, data digest, versions.
    groups
        Collinear groups; None where they were not asked for.
    second_seed
        (R, p, K) S of the first R draws with a second model seed; None where it was not asked for.
    """

    S: np.ndarray
    aggregate: Aggregate
    features: tuple[str, ...]
    classes: tuple[str, ...]
    n_oob: np.ndarray
    redraws: np.ndarray
    explainer: str
    space: str
    rows: RowSummaries | None
    meta: Mapping[str, Any] = field(default_factory=dict)
    groups: GroupAttributions | None = None
    second_seed: np.ndarray | None = None

    @property
    def runs(self) -> int:
        """B, the number of runs."""
        return self.S.shape[0]

    @property
    def scores(self) -> np.ndarray:
        """(B, p) one number per run and feature: the mean over the outputs (ours) where K > 1."""
        return self.S[:, :, 0] if self.S.shape[2] == 1 else self.S.mean(axis=2)

    def save(self, directory: Path) -> None:
        """Write the arrays and their description into ``directory``, byte for byte repeatably.

        Raises
        ------
        OutputError
            Where the files cannot be written.
        """
        description = {
            "format": FORMAT,
            "aggregate": self.aggregate,
            "features": self.features,
            "classes": self.classes,
            "explainer": self.explainer,
            "space": self.space,
            "row_summaries": self.rows is not None,
            "groups": _describe_groups(self.groups),
            "second_seed": self.second_seed is not None,
            "meta": dict(self.meta),
        }
        _save_arrays(
            directory / RUNS_FILE, {"S": self.S, "n_oob": self.n_oob, "redraws": self.redraws}
        )
        rows, groups, second = self.rows, self.groups, self.second_seed
        parts: dict[str, dict[str, Any] | None] = {
            ROWS_FILE: None
            if rows is None
            else {item.name: np.asarray(getattr(rows, item.name)) for item in _ROW_FIELDS},
            GROUPS_FILE: None if groups is None else {"S": groups.S},
            SECOND_SEED_FILE: None if second is None else {"S": second},
        }
        for name, arrays in parts.items():
            if arrays is None:
                (directory / name).unlink(missing_ok=True)
            else:
                _save_arrays(directory / name, arrays)
        write_json(directory / META_FILE, description)

    @classmethod
    def load(cls, directory: Path) -> Attributions:
        """Read what :meth:`save` wrote.

        Raises
        ------
        DataError
            Where a file is missing, damaged or something else.
        """
        try:
            description = json.loads((directory / META_FILE).read_text(encoding="utf-8"))
            if not isinstance(description, dict) or description.get("format") != FORMAT:
                raise DataError(f"{directory / META_FILE} does not describe attributions")
            runs = _load_arrays(directory / RUNS_FILE)
            rows = None
            if description["row_summaries"]:
                arrays: dict[str, Any] = dict(_load_arrays(directory / ROWS_FILE))
                arrays["n_rows_total"] = int(arrays["n_rows_total"])
                arrays["levels"] = tuple(arrays["levels"].tolist())
                rows = RowSummaries(**arrays)
            groups = None
            if (found := description.get("groups")) is not None:
                groups = GroupAttributions(
                    threshold=found["threshold"],
                    members=tuple(tuple(members) for members in found["members"]),
                    copies=tuple(tuple(same) for same in found["copies"]),
                    S=_load_arrays(directory / GROUPS_FILE)["S"],
                    row_share=found["row_share"],
                )
            second = None
            if description.get("second_seed"):
                second = _load_arrays(directory / SECOND_SEED_FILE)["S"]
            return cls(
                S=runs["S"],
                aggregate=description["aggregate"],
                features=tuple(description["features"]),
                classes=tuple(description["classes"]),
                n_oob=runs["n_oob"],
                redraws=runs["redraws"],
                explainer=description["explainer"],
                space=description["space"],
                rows=rows,
                meta=description["meta"],
                groups=groups,
                second_seed=second,
            )
        except FileNotFoundError as error:
            raise DataError(
                f"no attributions in {directory}: {error.filename} is missing"
            ) from error
        except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
            raise DataError(f"the attributions in {directory} are damaged: {error}") from error


_ROW_FIELDS = fields(RowSummaries)


def _describe_groups(groups: GroupAttributions | None) -> dict[str, Any] | None:
    if groups is None:
        return None
    return {
        "threshold": groups.threshold,
        "members": [list(members) for members in groups.members],
        "copies": [list(same) for same in groups.copies],
        "row_share": groups.row_share,
    }


def _save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    with writing(path) as file:
        np.savez_compressed(file, **arrays)


def _load_arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}
