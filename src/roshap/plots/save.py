"""Figure files: SVG and PNG with the same bytes every time, and their provenance inside."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

from roshap.compute.files import write_bytes
from roshap.errors import DataError
from roshap.plots.style import context

_KEY = "roshap provenance"
_DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"


def save_figure(fig: Figure, path: Path, provenance: Mapping[str, str]) -> list[Path]:
    """Write a figure as SVG and PNG, each whole or not at all.

    The bytes depend on the figure, the provenance and the libraries' versions only: there is no
    time and no random id in them.

    Parameters
    ----------
    fig : Figure
        Its layout is settled by the first call.
    path : Path
        Without suffix: ``.svg`` and ``.png`` are appended.
    provenance : mapping of str to str
        What the figure was made from; :func:`read_provenance` reads it back.

    Returns
    -------
    list of Path
        The SVG and the PNG.

    Raises
    ------
    OutputError
        If the files cannot be written.
    """
    text = json.dumps({_KEY: dict(provenance)}, sort_keys=True)
    metadata = {
        "svg": {"Date": None, "Creator": "roshap", "Description": text},
        "png": {"Software": "roshap", _KEY: text},
    }
    with context():
        # Every drawing moves a live layout a little: settled once, all files agree.
        fig.draw_without_rendering()
        fig.set_layout_engine("none")
    written = []
    for kind, inside in metadata.items():
        drawn = io.BytesIO()
        with context():
            fig.savefig(drawn, format=kind, metadata=inside)
        target = path.with_name(f"{path.name}.{kind}")
        write_bytes(target, drawn.getvalue())
        written.append(target)
    return written


def read_provenance(path: Path) -> dict[str, str]:
    """Return the provenance inside a figure file of :func:`save_figure`.

    Parameters
    ----------
    path : Path
        An SVG or a PNG, told apart by suffix.

    Returns
    -------
    dict of str to str

    Raises
    ------
    DataError
        If the file cannot be read, is neither SVG nor PNG, or holds no provenance.
    """
    readers = {".svg": _svg_text, ".png": _png_text}
    if path.suffix.lower() not in readers:
        raise DataError(f"{path} is no figure: expected .svg or .png, not {path.suffix!r}")
    try:
        text = readers[path.suffix.lower()](path)
    except FileNotFoundError as error:
        raise DataError(f"no such figure: {path}") from error
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(f"{path} cannot be read as {path.suffix[1:].upper()}: {error}") from error
    try:
        found = json.loads(text or "")[_KEY]
    except (ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, dict):
        raise DataError(f"{path} holds no provenance: roshap did not write it")
    return {str(key): str(value) for key, value in found.items()}


def _svg_text(path: Path) -> str | None:
    return ET.parse(path).getroot().findtext(f".//{_DESCRIPTION}")


def _png_text(path: Path) -> str | None:
    with Image.open(path, formats=["PNG"]) as image:
        return image.info.get(_KEY)
