"""Spectral filtering: filters, conditions, parameter choice, and what comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from roshap.errors import DataError
from roshap.plots.style import CATEGORIES, GREY, INK, PALE, context, names_width
from roshap.regression.spectral.filters import FILTERS, make_filter
from roshap.regression.spectral.studies import Followed

Array = NDArray[np.float64]

FILTER_LABELS = {
    "tikhonov": "Tikhonov",
    "iterated_tikhonov": "iterated Tikhonov",
    "tsvd": "TSVD",
    "landweber": "Landweber",
    "showalter": "Showalter",
    "nu_method": "nu-method",
}
RULE_LABELS = {
    "discrepancy": "discrepancy (knows the noise)",
    "gcv": "GCV",
    "l_curve": "L-curve",
    "quasi_optimality": "quasi-optimality",
    "loo": "leave-one-out",
    "kfold": "k folds",
}
_COLOURS = ("#0077BB", "#EE9A33", "#3BB273", "#C8102E", "#5B2A86", "#88CCEE")
_MARKERS = ("o", "s", "^", "D", "v", "P")
RULE_LOOKS: dict[str, dict[str, Any]] = {
    rule: {"color": colour, "marker": marker}
    for rule, colour, marker in zip(RULE_LABELS, _COLOURS, _MARKERS, strict=True)
}
FILTER_COLOURS = dict(zip(FILTER_LABELS, _COLOURS, strict=True))
_PARAMETERS = {"lam": "lam", "steps": "steps t", "components": "components k"}


def filter_factors(*, title: str = "Filter factors at the same strength") -> Figure:
    """Draw ``phi = s G(s)`` of every filter, each set to phi = 1/2 near s = 0.01 s_max."""
    s = np.geomspace(1e-5, 1.0, 400)
    shift = 0.01
    levels = {
        "tikhonov": shift,
        "iterated_tikhonov": shift * (1 + np.sqrt(2)),
        "tsvd": float(np.count_nonzero(s >= shift)),
        "landweber": np.ceil(np.log(2) / shift),
        "showalter": shift / np.log(2),
        "nu_method": 12.0,
    }
    with context():
        fig = Figure(figsize=(7.2, 4.2), layout="constrained")
        ax = fig.subplots()
        ax.axvline(shift, color=PALE, lw=1)
        ax.axhline(0.5, color=PALE, lw=1)
        for name in FILTERS:
            method = make_filter(name)
            ax.plot(
                s,
                method.factors(s, levels[name]),
                color=FILTER_COLOURS[name],
                lw=1.6,
                # exp(-s t) is what Landweber's (1 - s)^t comes to: it would be hidden
                ls="--" if name == "showalter" else "-",
                label=f"{FILTER_LABELS[name]} ({_amount(method.parameter, levels[name], s)})",
            )
        _logarithmic(ax, x=True)
        ax.set(xlabel="eigenvalue s / s_max", ylabel="filter factor phi = s G(s)")
        fig.legend(loc="outside right center")
        fig.suptitle(title)
    return fig


def picard(
    sigma: Array,
    coefficients: Array,
    *,
    noise: float | None = None,
    title: str = "Picard plot",
) -> Figure:
    """Draw singular values, data coefficients and their quotients, the largest value first.

    Parameters
    ----------
    sigma : ndarray of shape (r,)
    coefficients : ndarray of shape (r,)
        ``|u_i'b|``.
    noise : float, optional
        Expected size of the noise in one coefficient.
    title : str
    """
    order = np.argsort(sigma)[::-1]
    sigma, size = sigma[order], np.abs(coefficients)[order]
    place = np.arange(1, len(sigma) + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.where(sigma > 0, size / sigma, np.nan)
    many = len(sigma) > 500
    style: dict[str, Any] = {"ls": "", "marker": "." if many else "o", "ms": 1.5 if many else 3.5}
    with context():
        fig = Figure(figsize=(7.2, 4.2), layout="constrained")
        ax = fig.subplots()
        for values, label, colour in (
            (quotient, "|u'b| / sigma: the naive solution", _COLOURS[1]),
            (size, "|u'b|: data", _COLOURS[0]),
        ):
            ax.plot(place, values, color=colour, rasterized=many, **style)
            ax.plot([], [], ls="", marker="o", ms=4, color=colour, label=label)
        ax.plot(place, sigma, color=INK, lw=1.4, label="sigma: singular values")
        if noise is not None and noise > 0:
            ax.axhline(noise, color=_COLOURS[3], lw=1, ls="--", label="noise in one coefficient")
        _logarithmic(ax, x=many, y=True)
        ax.set(xlabel="component i, the largest singular value first", ylabel="size")
        fig.legend(loc="outside right center")
        fig.suptitle(title)
    return fig


def l_curve(item: Followed, *, title: str = "L-curve") -> Figure:
    """Draw ``||x||`` against ``||r||`` along a path, with the place that each rule took."""
    path = item.path
    with context():
        fig = Figure(figsize=(7.2, 4.2), layout="constrained")
        ax = fig.subplots()
        ax.plot(path.residual_norm, path.solution_norm, color=GREY, lw=1.2, marker=".", ms=4)
        for rule, choice in item.choices.items():
            place = (path.residual_norm[choice.index], path.solution_norm[choice.index])
            ax.plot(*place, ls="", ms=7, mfc="none", mew=1.6, **RULE_LOOKS[rule])
        ax.plot(
            path.residual_norm[item.best],
            path.solution_norm[item.best],
            ls="",
            marker="*",
            ms=11,
            color=INK,
            zorder=1,
        )
        _logarithmic(ax, x=True, y=True)
        # far up the norms are those of noise alone: the corner is what a reader looks for
        top = min(path.solution_norm.max(), 30 * path.solution_norm[item.best])
        bottom = max(path.solution_norm.min(), path.solution_norm[item.best] / 30)
        ax.set_ylim(bottom * 0.8, top * 1.25)
        ax.set(xlabel="residual norm ||Ax - b||", ylabel="solution norm ||x||")
        fig.legend(handles=_rule_handles(item.choices), loc="outside right center")
        fig.suptitle(title)
    return fig


def semiconvergence(
    items: Sequence[Followed], *, title: str = "Error along the iteration"
) -> Figure:
    """Draw the error against the number of steps: it falls, and rises again as noise comes in."""
    if not items:
        raise DataError("no iteration to draw")
    with context():
        fig = Figure(figsize=(4.3 * len(items), 4.0), layout="constrained")
        axes = fig.subplots(1, len(items), sharey=True, squeeze=False)[0]
        for ax, item in zip(axes, items, strict=True):
            _errors_along(ax, item)
            ax.set_title(FILTER_LABELS[item.filter])
        axes[0].set_ylabel("relative error of x")
        rules = {rule: choice for item in items for rule, choice in item.choices.items()}
        handles = _rule_handles(rules)
        fig.legend(handles=handles, loc="outside lower center", ncols=4)
        fig.suptitle(title)
    return fig


def _errors_along(ax: Axes, item: Followed) -> None:
    path = item.path
    ax.plot(path.levels, item.errors, color=GREY, lw=1.4)
    ax.plot(path.levels[item.best], item.errors[item.best], marker="*", ms=11, color=INK)
    for rule, choice in item.choices.items():
        ax.plot(
            choice.value,
            item.errors[choice.index],
            ls="",
            ms=7,
            mfc="none",
            mew=1.6,
            **RULE_LOOKS[rule],
        )
    _logarithmic(ax, x=True, y=True, narrow=True)
    ax.set_xlabel(_PARAMETERS[path.parameter])
    ax.set_ylim(item.errors.min() * 0.7, min(item.errors.max(), 30.0) * 1.3)


def rule_ratios(table: pd.DataFrame, *, title: str = "Loss of each rule") -> Figure:
    """Draw how much each rule loses, by problem and filter.

    Parameters
    ----------
    table : DataFrame
        Of :func:`roshap.regression.spectral.studies.table_of`, with a column ``problem``; a ratio
        is averaged (geometrically) over what is not shown.
    title : str
    """
    problems = list(dict.fromkeys(table["problem"]))
    filters = [name for name in FILTER_LABELS if name in set(table["filter"])]
    rules = [rule for rule in RULE_LABELS if rule in set(table["rule"])]
    columns = min(len(problems), 4)
    lines = -(-len(problems) // columns)
    with context():
        labels = [FILTER_LABELS[name] for name in filters]
        size = (max(2.4 * columns, 4.8) + names_width(labels), 1.5 + 1.9 * lines)
        fig = Figure(figsize=size, layout="constrained")
        axes = fig.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
        top = 1.0
        for ax, name in zip(axes.flat, problems, strict=False):
            part = table[table["problem"] == name]
            ax.axvline(1.0, color=INK, lw=0.8)
            for shift, rule in enumerate(rules):
                means = part[part["rule"] == rule].groupby("filter")["ratio"]
                ratio = np.exp(means.apply(lambda r: np.log(r).mean()).reindex(filters))
                top = max(top, float(ratio.max()) if ratio.notna().any() else top)
                offset = (shift - (len(rules) - 1) / 2) * 0.13
                places = np.arange(len(filters)) + offset
                ax.plot(ratio, places, ls="", ms=5, **RULE_LOOKS[rule])
            ax.set_title(name)
        for ax in axes.flat[len(problems) :]:
            ax.set_visible(False)
        for ax in axes.flat:
            _logarithmic(ax, x=True)
            ax.set(xlim=(0.85, 1.4 * top), ylim=(len(filters) - 0.4, -0.6))
            ax.set_yticks(np.arange(len(filters)), labels)
            ax.grid(axis="x")
            ax.tick_params(axis="y", length=0)
        for ax in axes[-1]:
            ax.set_xlabel("error / smallest error")
        fig.legend(
            handles=_rule_handles(dict.fromkeys(rules), best=False),
            loc="outside lower center",
            ncols=3,
        )
        fig.suptitle(title)
    return fig


def curves(
    t: Array, truth: Array, found: Mapping[str, Array], *, title: str, x_label: str = "t"
) -> Figure:
    """Draw a true solution and what several methods found.

    A method whose solution is wildly off is cut by the axes.
    """
    with context():
        fig = Figure(figsize=(7.2, 4.0), layout="constrained")
        ax = fig.subplots()
        ax.plot(t, truth, color=INK, lw=2.2, label="true solution")
        for colour, (name, values) in zip(_COLOURS, found.items(), strict=False):
            ax.plot(t, values, color=colour, lw=1.3, label=name)
        margin = 0.6 * float(np.ptp(truth))
        ax.set_ylim(float(truth.min()) - margin, float(truth.max()) + margin)
        ax.set(xlabel=x_label, ylabel="x(t)")
        fig.legend(loc="outside right center")
        fig.suptitle(title)
    return fig


def pictures(shown: Mapping[str, Array], *, title: str, columns: int = 3) -> Figure:
    """Draw grey pictures with values from 0 to 1, each under its name."""
    lines = -(-len(shown) // columns)
    height, width = next(iter(shown.values())).shape
    with context():
        size = (3.4 * columns, lines * (3.4 * height / width + 0.2) + 0.3)
        fig = Figure(figsize=size, layout="constrained")
        axes = fig.subplots(lines, columns, squeeze=False)
        for ax in axes.flat:
            ax.set_axis_off()
        for ax, (name, picture) in zip(axes.flat, shown.items(), strict=False):
            ax.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            ax.set_title(name)
        fig.suptitle(title)
    return fig


def dots(
    values: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    x_label: str,
    title: str,
    reference: str | None = None,
) -> Figure:
    """Draw a number for each method and group: every repeat as a dot, the mean as a line.

    Parameters
    ----------
    values : mapping of group to mapping of method to sequence of float
    x_label, title : str
    reference : str, optional
        A method whose mean is drawn through all rows.
    """
    names = [(group, name) for group, part in values.items() for name in part]
    if not names:
        raise DataError("no values to draw")
    with context():
        labels = [name for _, name in names]
        size = (6.0 + names_width(labels), 1.4 + 0.26 * len(names))
        fig = Figure(figsize=size, layout="constrained")
        ax = fig.subplots()
        for place, (group, name) in enumerate(names):
            colour = _COLOURS[list(values).index(group) % len(_COLOURS)]
            data = np.asarray(values[group][name], dtype=float)
            ax.plot(data, np.full(len(data), place), "o", ms=4, color=colour, alpha=0.45)
            ax.plot([data.mean()] * 2, [place - 0.32, place + 0.32], color=colour, lw=2.2)
            if name == reference:
                ax.axvline(data.mean(), color=PALE, lw=1, zorder=0)
        ax.set_yticks(np.arange(len(names)), labels)
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel(x_label)
        ax.grid(axis="x")
        handles = [
            Line2D([], [], color=_COLOURS[i % len(_COLOURS)], marker="o", ms=4, lw=2, label=group)
            for i, group in enumerate(values)
        ]
        fig.legend(handles=handles, loc="outside lower center", ncols=3)
        fig.suptitle(title)
    return fig


def path_scores(
    levels: Array,
    scores: Mapping[str, Array],
    *,
    parameter: str,
    y_label: str,
    title: str,
    chosen: Mapping[str, float] | None = None,
) -> Figure:
    """Draw scores of all levels of one path, and the levels that rules took."""
    with context():
        fig = Figure(figsize=(7.2, 4.0), layout="constrained")
        ax = fig.subplots()
        for colour, (name, values) in zip(CATEGORIES[::2], scores.items(), strict=False):
            ax.plot(levels, values, color=colour, lw=1.6, label=name)
        for rule, value in (chosen or {}).items():
            ax.axvline(value, ls="--", lw=1.2, color=RULE_LOOKS[rule]["color"])
            ax.plot(
                [], [], ls="--", color=RULE_LOOKS[rule]["color"], label=f"{RULE_LABELS[rule]} takes"
            )
        finite = np.concatenate([v[np.isfinite(v)] for v in scores.values()])
        low = float(finite.min())
        ax.set_ylim(0.9 * low, min(float(finite.max()), 3 * low))
        _logarithmic(ax, x=True)
        ax.set(xlabel=_PARAMETERS[parameter], ylabel=y_label)
        fig.legend(loc="outside right center")
        fig.suptitle(title)
    return fig


def _rule_handles(rules: Mapping[str, object], *, best: bool = True) -> list[Line2D]:
    handles = [
        Line2D(
            [],
            [],
            ls="",
            ms=6,
            mfc="none" if best else None,
            mew=1.4,
            label=RULE_LABELS[r],
            **RULE_LOOKS[r],
        )
        for r in rules
    ]
    if best:
        handles.append(Line2D([], [], ls="", marker="*", ms=10, color=INK, label="smallest error"))
    return handles


def _logarithmic(ax: Axes, *, x: bool = False, y: bool = False, narrow: bool = False) -> None:
    """Set logarithmic axes with plain labels, few enough not to touch.

    A ``narrow`` y axis spans few decades: it has labels at 2 and 5 as well.
    """
    for wanted, axis, scale in ((x, ax.xaxis, ax.set_xscale), (y, ax.yaxis, ax.set_yscale)):
        if wanted:
            scale("log")
            between = (1.0, 2.0, 5.0) if narrow and axis is ax.yaxis else (1.0,)
            axis.set_major_locator(LogLocator(subs=between, numticks=6))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())


def _amount(parameter: str, level: float, s: Array) -> str:
    if parameter == "lam":
        return f"shift {level:.2g}"
    if parameter == "components":
        return f"s >= {s[len(s) - int(level)]:.2g}"
    return f"t = {level:.0f}"
