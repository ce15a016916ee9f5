"""Bootstrap samples and their out-of-bag rows as a scikit-learn splitter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from sklearn.model_selection import BaseShuffleSplit

from roshap.compute.seeds import replicate_seed
from roshap.errors import ConfigError, DataError

Strategy = Literal["plain", "stratified", "redraw"]
MAX_REDRAWS = 1000


@dataclass(frozen=True)
class Draw:
    """One bootstrap sample.

    Attributes
    ----------
    bag
        Row numbers drawn, with repetitions; (n,) without groups.
    oob
        Row numbers never drawn (with groups: of groups never drawn), ascending.
    redraws
        Samples thrown away before this one.
    """

    bag: np.ndarray
    oob: np.ndarray
    redraws: int


class BootstrapOOB(BaseShuffleSplit):
    """Draw rows with replacement; test on the rows that were never drawn (out of bag, OOB).

    A scikit-learn splitter: use it wherever a ``cv`` is asked for. The draw numbered ``b`` depends
    on ``random_state``, ``b``, the classes and the groups only: never on the number of splits,
    nor on the columns.

    Parameters
    ----------
    n_splits
        Number of bootstrap samples.
    strategy
        ``"plain"``: uniform draws. ``"redraw"``: uniform draws, repeated until each class of ``y``
        has ``min_per_class`` different rows in the bag. ``"stratified"``: draws inside each class,
        so that the bag has the classes' sizes, repeated in the same way. All three repeat a draw
        that leaves no row out of the bag or fewer than two different rows in it.
    min_per_class
        Different rows of each class that a bag must hold (not for ``"plain"``).
    random_state
        Seed; None takes a new one for every call of :meth:`split`.

    Notes
    -----
    With ``groups``, whole groups are drawn with replacement, as many as there are, so that a drawn
    group is never OOB. ``"stratified"`` then draws groups inside each class and needs groups of
    one class. Sample weights do not change the draws: they belong into the fit and into the sum.
    For regression leave ``y`` out or use ``"plain"``. Where scikit-learn's metadata routing is
    enabled, :meth:`split` asks for ``groups``.
    """

    # scikit-learn's way for a splitter to ask for metadata
    __metadata_request__split = {"groups": True}  # noqa: RUF012  # read by scikit-learn as it is

    def __init__(
        self,
        n_splits: int = 100,
        *,
        strategy: Strategy = "redraw",
        min_per_class: int = 2,
        random_state: int | None = None,
    ) -> None:
        self.n_splits = n_splits
        self.strategy = strategy
        self.min_per_class = min_per_class
        self.random_state = random_state

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Return the number of splits."""
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield ``(bag, oob)`` row numbers for each bootstrap sample.

        Parameters
        ----------
        X
            Anything with n rows.
        y
            (n,) classes; None, or a target of floating numbers with fractions, is no class.
        groups
            (n,) group of each row, or None.

        Raises
        ------
        ConfigError
            Where a parameter has no valid value.
        DataError
            Where ``y`` or ``groups`` do not fit, or no acceptable sample can be drawn.
        """
        self._check_parameters()
        seed = self.random_state
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        self.redraws_: list[int] = []
        for index in range(self.n_splits):
            draw = self.draw(index, n, y=y, groups=groups, seed=seed)
            self.redraws_.append(draw.redraws)
            yield draw.bag, draw.oob

    def draw(
        self, index: int, n: int, *, y: Any = None, groups: Any = None, seed: int | None = None
    ) -> Draw:
        """Return the bootstrap sample numbered ``index`` of ``n`` rows.

        Parameters
        ----------
        index
            Number of the sample, from 0.
        n
            Number of rows.
        y, groups
            As in :meth:`split`.
        seed
            The seed; ``random_state`` by default, which must then be a number.
        """
        self._check_parameters()
        seed = self.random_state if seed is None else seed
        if seed is None:
            raise ConfigError("random_state=None: a single draw needs a seed")
        if n < 2:
            raise DataError(f"{n} rows: a bootstrap needs at least 2")
        units = _Units.make(n, _classes(y, n), groups)
        self._check_classes(units)
        rng = np.random.default_rng(replicate_seed(seed, index))
        for redraws in range(MAX_REDRAWS):
            drawn = units.draw(rng, stratified=self.strategy == "stratified")
            bag = units.rows(drawn)
            in_bag = np.zeros(n, dtype=bool)
            in_bag[bag] = True
            if self._accepts(in_bag, units.classes):
                return Draw(bag, np.flatnonzero(~in_bag), redraws)
        raise DataError(
            f"{MAX_REDRAWS} bootstrap samples of {units.describe()} were drawn and none had "
            f"{self._wanted()}: lower min_per_class or use strategy='stratified'"
        )

    def _check_parameters(self) -> None:
        if self.strategy not in get_args(Strategy):
            raise ConfigError(
                f"unknown strategy {self.strategy!r} (valid: {', '.join(get_args(Strategy))})"
            )
        if self.n_splits < 1:
            raise ConfigError(f"n_splits={self.n_splits}: must be 1 or more")
        if self.min_per_class < 1:
            raise ConfigError(f"min_per_class={self.min_per_class}: must be 1 or more")

    def _check_classes(self, units: _Units) -> None:
        """Refuse what no number of redraws can satisfy."""
        if units.count < 2:
            raise DataError("one group only: a bootstrap of groups needs at least 2")
        if self.strategy == "plain" or units.classes is None:
            return
        counts = np.bincount(units.classes)
        if counts.min() < self.min_per_class:
            raise DataError(
                f"class number {counts.argmin()} has {counts.min()} rows, and each bag must hold "
                f"{self.min_per_class} different ones: lower min_per_class"
            )

    def _accepts(self, in_bag: np.ndarray, classes: np.ndarray | None) -> bool:
        if in_bag.all() or in_bag.sum() < 2:
            return False
        if self.strategy == "plain" or classes is None:
            return True
        counts = np.bincount(classes[in_bag], minlength=int(classes.max()) + 1)
        return bool(counts.min() >= self.min_per_class)

    def _wanted(self) -> str:
        if self.strategy == "plain":
            return "a row out of the bag and two different rows in it"
        return f"{self.min_per_class} different rows of each class and a row out of the bag"


@dataclass(frozen=True)
class _Units:
    """What is drawn: rows, or groups of rows.

    Attributes
    ----------
    count
        Number of units.
    classes
        (n,) class code of each row, or None.
    group_of
        (n,) unit of each row where the units are groups, else None.
    """

    count: int
    classes: np.ndarray | None
    group_of: np.ndarray | None

    @classmethod
    def make(cls, n: int, classes: np.ndarray | None, groups: Any) -> _Units:
        if groups is None:
            return cls(n, classes, None)
        names, group_of = np.unique(np.asarray(groups), return_inverse=True)
        if group_of.shape != (n,):
            raise DataError(f"groups have {group_of.size} entries for {n} rows")
        return cls(names.size, classes, group_of)

    def draw(self, rng: np.random.Generator, *, stratified: bool) -> np.ndarray:
        """Draw as many units as there are, with replacement; (count,) unit numbers."""
        if not stratified or self.classes is None:
            return rng.integers(self.count, size=self.count)
        class_of_unit = self._class_of_unit(self.classes)
        drawn = np.empty(self.count, dtype=np.int64)
        for code in np.unique(class_of_unit):
            members = np.flatnonzero(class_of_unit == code)
            drawn[members] = rng.choice(members, size=members.size)
        return drawn

    def rows(self, units: np.ndarray) -> np.ndarray:
        """Return the rows of the drawn units, unit by unit."""
        if self.group_of is None:
            return units
        order = np.argsort(self.group_of, kind="stable")
        ends = np.cumsum(np.bincount(self.group_of, minlength=self.count))
        members = np.split(order, ends[:-1])
        return np.concatenate([members[unit] for unit in units])

    def describe(self) -> str:
        kind = "rows" if self.group_of is None else "groups"
        return f"{self.count} {kind}"

    def _class_of_unit(self, classes: np.ndarray) -> np.ndarray:
        if self.group_of is None:
            return classes
        class_of_unit = np.zeros(self.count, dtype=np.int64)
        class_of_unit[self.group_of] = classes
        if (class_of_unit[self.group_of] != classes).any():
            raise DataError(
                "strategy='stratified' needs groups of one class each: use strategy='redraw'"
            )
        return class_of_unit


def _classes(y: Any, n: int) -> np.ndarray | None:
    """Return (n,) class codes from 0, or None where ``y`` is no class."""
    if y is None:
        return None
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise DataError(f"y has shape {labels.shape}: must be ({n},)")
    if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        return None
    return np.unique(labels, return_inverse=True)[1]
