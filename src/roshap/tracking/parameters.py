"""Nested configuration to MLflow's flat parameters, within MLflow's limits."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

MAX_KEY = 250
MAX_VALUE = 6000
MAX_TAG = 8000

_FORBIDDEN = re.compile(r"[^/\w.\-: ]")


def flatten(params: Mapping[str, Any]) -> dict[str, str]:
    """Return nested ``params`` as ``{"bootstrap.runs": "100", ...}``.

    Mappings are descended into; anything else, a list too, is one value. Text stays as it is, the
    rest is written as JSON, so that ``None``, ``True`` and numbers read as in the configuration
    files. Whole values are returned; :func:`shorten` fits one to MLflow's limit.
    """
    return {key: _text(value) for key, value in _leaves(params, "")}


def _leaves(params: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in params.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{name}.")
        else:
            yield name, value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def shorten(value: str, limit: int = MAX_VALUE) -> str:
    """Return ``value`` cut to ``limit`` characters, ending in the digest of all of it.

    Two long values that differ only after the cut are thus still different in MLflow.
    """
    if len(value) <= limit:
        return value
    end = f"... (sha256 {_digest(value)})"
    return value[: limit - len(end)] + end


def safe_key(key: str) -> str:
    """Return ``key`` as a name that MLflow takes for parameters, metrics and tags.

    Names that MLflow takes stay as they are. In others the forbidden characters become ``_`` and a
    digest of the whole name is added, so that different names stay different.
    """
    clean = posixpath.normpath(_FORBIDDEN.sub("_", key)).strip("/.") if key else ""
    if clean == key and len(key) <= MAX_KEY:
        return key
    return f"{clean[: MAX_KEY - 9]}-{_digest(key)[:8]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
