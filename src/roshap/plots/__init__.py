"""Figures: data in, a matplotlib ``Figure`` out, and files that say where they come from."""

from __future__ import annotations

from roshap.plots.certainty import intervals, settling, ties, top_k, variance_shares
from roshap.plots.comparison import slopes
from roshap.plots.distributions import histograms, ridgelines, single_rounds
from roshap.plots.rankings import ranking
from roshap.plots.save import read_provenance, save_figure
from roshap.plots.style import RANKER_COLOURS, context

__all__ = [
    "RANKER_COLOURS",
    "context",
    "histograms",
    "intervals",
    "ranking",
    "read_provenance",
    "ridgelines",
    "save_figure",
    "settling",
    "single_rounds",
    "slopes",
    "ties",
    "top_k",
    "variance_shares",
]
