"""A figure as the report's templates show it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

from roshap.plots import read_provenance


def figure_card(path: Path, experiment: str, captions: Mapping[str, str]) -> dict[str, str]:
    """Return a PNG figure as the template shows it: picture, caption, lineage."""
    inside = read_provenance(path)
    return {
        "png": base64.b64encode(path.read_bytes()).decode(),
        "alt": f"{path.stem.replace('_', ' ')} of {experiment}",
        "caption": captions.get(path.stem, path.stem.replace("_", " ")),
        "lineage": "\n".join(f"{key}: {value}" for key, value in inside.items()),
    }
