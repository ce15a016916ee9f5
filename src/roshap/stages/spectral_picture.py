"""A photograph, blurred and noisy, restored by every filter and rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from roshap.plots import save_figure
from roshap.plots.spectral import (
    FILTER_LABELS,
    RULE_LABELS,
    l_curve,
    picard,
    pictures,
    semiconvergence,
)
from roshap.regression.spectral import CosineBlur, FourierBlur, gaussian_psf, solve
from roshap.regression.spectral.studies import Followed, follow, table_of
from roshap.stages.regress import Findings, Job, ShownTable
from roshap.stages.regress_spectral_config import PictureConfig, SpectralConfig
from roshap.stages.spectral_problems import write_table
from roshap.tracking import StageRun

#: Pixels a side of the detail that the figure shows enlarged.
_DETAIL = 96


def picture(chosen: SpectralConfig, job: Job, run: StageRun) -> Findings:
    """Blur, add noise, restore; compare by PSNR."""
    settings = chosen.picture
    assert settings is not None
    truth = _grey(settings)
    blur = FourierBlur if settings.boundary == "periodic" else CosineBlur
    operator = blur(gaussian_psf(settings.blur), truth.shape)
    rng = np.random.default_rng(chosen.seed)
    noise = settings.noise * rng.normal(size=truth.shape)
    b = operator.matvec(truth.ravel()).reshape(truth.shape) + noise
    delta = float(settings.noise * np.sqrt(truth.size))
    naive = solve(operator, b, "tikhonov", lam=0.0).x
    found = []
    for name in chosen.filters:
        item = follow(
            operator, b.ravel(), truth, name, chosen.rules, delta=delta, levels=chosen.levels
        )
        found.append(item)
        with run.child(name) as child:
            psnrs = [_from_error(truth, error) for error in item.errors]
            child.log_series("psnr.by_place", list(range(len(psnrs))), psnrs)
    table = table_of(found)
    table["psnr"] = [_from_error(truth, error) for error in table["error"]]
    table["best_psnr"] = [_from_error(truth, error) for error in table["best_error"]]
    write_table(table, job.folder / "tables" / "psnr.csv")
    before, bad = psnr(truth, b), psnr(truth, naive)
    captions = _draw(job, settings, operator, truth, b, naive, found)
    return _findings(chosen, table, before, bad, truth.shape, captions)


def psnr(truth: np.ndarray, shown: np.ndarray) -> float:
    """Return the peak signal-to-noise ratio in dB of a picture with values from 0 to 1."""
    return float(-10 * np.log10(np.mean((truth - shown) ** 2)))


def _from_error(truth: np.ndarray, relative: float) -> float:
    return float(-10 * np.log10(relative**2 * np.mean(truth**2)))


def _grey(settings: PictureConfig) -> np.ndarray:
    """Return a picture of scikit-learn's in grey (ITU-R BT.601), its values from 0 to 1."""
    from sklearn.datasets import load_sample_image

    colour = load_sample_image(settings.image)[:: settings.every, :: settings.every]
    return np.asarray(colour, dtype=np.float64) @ [0.299, 0.587, 0.114] / 255


def _draw(
    job: Job,
    settings: PictureConfig,
    operator: FourierBlur | CosineBlur,
    truth: np.ndarray,
    b: np.ndarray,
    naive: np.ndarray,
    found: list[Followed],
) -> dict[str, str]:
    what = f"blur {settings.blur:g} pixels, noise {settings.noise:g}"
    restored = {}
    for item in found:
        rule = "gcv" if "gcv" in item.choices else next(iter(item.choices))
        value = item.choices[rule].value
        x = solve(operator, b, item.filter, rule, levels=[value], delta=1.0).x
        label = f"{FILTER_LABELS[item.filter]}, {RULE_LABELS[rule]}: {psnr(truth, x):.1f} dB"
        restored[label] = x
    first = next(iter(restored))
    shown = {
        "true picture": truth,
        f"blurred and noisy: {psnr(truth, b):.1f} dB": b,
        f"naive inverse: {psnr(truth, naive):.1f} dB": naive,
        **restored,
    }
    side = min(_DETAIL, *truth.shape)
    top, left = ((size - side) // 2 for size in truth.shape)
    part = (slice(top, top + side), slice(left, left + side))
    figures = {
        "pictures": pictures(
            {k: v for k, v in shown.items() if k not in restored or k == first},
            title=f"Deblurring: {what}",
            columns=2,
        ),
        "detail": pictures(
            {k: v[part] for k, v in shown.items()},
            title=f"A detail, enlarged (PSNR of the whole picture): {what}",
        ),
        "picard": picard(
            operator.sigma,
            np.abs(operator.analyse(b.ravel())),
            noise=settings.noise,
            title=f"Picard plot of the picture: {what}",
        ),
    }
    captions = {
        "pictures": f"{what}: before, the naive inverse and a filter with its parameter chosen "
        "from the data.",
        "detail": "The same, enlarged, for every filter.",
        "picard": "Below the dashed line the data are noise: dividing by sigma there is what ruins "
        "the naive inverse.",
    }
    smooth = next((item for item in found if item.path.parameter == "lam"), None)
    if smooth is not None:
        title = f"L-curve of {FILTER_LABELS[smooth.filter]}: {what}"
        figures["l_curve"] = l_curve(smooth, title=title)
        captions["l_curve"] = "What each rule takes along the L-curve."
    steps = [item for item in found if item.path.parameter == "steps"]
    if steps:
        figures["semiconvergence"] = semiconvergence(steps, title=f"Semiconvergence: {what}")
        captions["semiconvergence"] = "The picture gets sharper, then noise takes over."
    for name, figure in figures.items():
        save_figure(figure, job.folder / "figures" / name, {**job.lineage, "figure": name})
    return captions


def _findings(
    chosen: SpectralConfig,
    table: pd.DataFrame,
    before: float,
    naive: float,
    shape: tuple[int, ...],
    captions: dict[str, str],
) -> Findings:
    settings = chosen.picture
    assert settings is not None
    rules = [str(rule) for rule in chosen.rules]
    choices: list[dict[str, Any]] = [
        {str(key): value for key, value in row.items()} for row in table.to_dict("records")
    ]
    by = {(row["filter"], row["rule"]): row for row in choices}
    metrics = {
        "psnr_blurred": before,
        "psnr_naive": naive,
        **{f"psnr_{name}_{rule}": float(row["psnr"]) for (name, rule), row in by.items()},
    }
    free = [row for row in choices if row["rule"] != "discrepancy"] or choices
    top = max(free, key=lambda row: row["psnr"])
    sentence = (
        f"{FILTER_LABELS[top['filter']]} with {RULE_LABELS[top['rule']]} gains "
        f"{top['psnr'] - before:+.1f} dB ({before:.1f} to {top['psnr']:.1f}); the naive inverse "
        f"ends at {naive:.1f} dB"
    )
    rows = [
        [
            FILTER_LABELS[name],
            *(f"{by[name, rule]['psnr']:.2f}" for rule in rules),
            f"{by[name, rules[0]]['best_psnr']:.2f}",
        ]
        for name in chosen.filters
    ]
    shown = ShownTable(
        f"PSNR in dB (blurred picture: {before:.2f}, naive inverse: {naive:.2f}).",
        "tables/psnr.csv",
        ["filter", *(RULE_LABELS[rule] for rule in rules), "best on the path"],
        rows,
    )
    notes = [
        f"{FILTER_LABELS[row['filter']]}, {RULE_LABELS[row['rule']]}: {row['warning']}"
        for row in choices
        if row["warning"]
    ]
    facts = {
        "picture": f"{settings.image}, grey, {shape[0]} x {shape[1]} pixels",
        "blur": f"Gaussian, sigma {settings.blur:g} pixels, {settings.boundary} boundary",
        "noise": f"standard deviation {settings.noise:g} (white is 1)",
    }
    return Findings(metrics, sentence, facts, captions, [shown], notes)
