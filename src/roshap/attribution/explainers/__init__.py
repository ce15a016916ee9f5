"""Explainers: attributions of one fitted model, one file per routine."""

from roshap.attribution.explainers.base import Explainer
from roshap.attribution.explainers.registry import Method, make_explainer, prepare

__all__ = ["Explainer", "Method", "make_explainer", "prepare"]
