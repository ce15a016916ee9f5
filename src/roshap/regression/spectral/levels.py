"""Which levels of a filter a caller asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roshap.regression.spectral.errors import SpectralError
from roshap.regression.spectral.filters import TSVD, Array, Filter

Levels = int | Sequence[float] | Array


def wanted_levels(
    filter: Filter,
    s: Array,
    *,
    lam: float | None,
    steps: int | None,
    components: int | None,
    levels: Levels,
    scale: float = 1.0,
) -> tuple[Array, Array, bool]:
    """Return the levels on the scale of ``s``, as the user counts them, and if one was fixed.

    Parameters
    ----------
    filter : Filter
    s : ndarray
        Clamped eigenvalues.
    lam, steps, components : number, optional
        At most one, the one that the filter has. Truncation takes a threshold ``lam`` as well.
    levels : int or sequence of float
        How many levels, or which; unused where a level is fixed.
    scale : float
        A shift of ``scale * lam`` belongs to ``lam``: n for kernels, 1 for operators.

    Raises
    ------
    SpectralError
        For a parameter that the filter does not have, or a value it is not defined for.
    """
    named = {"lam": lam, "steps": steps, "components": components}
    given = {name: value for name, value in named.items() if value is not None}
    unit = scale if filter.parameter == "lam" else 1.0
    if given:
        chosen = _fixed(filter, s, given, scale)
        # checked as it was given, so that the message shows the user's number
        on_scale = filter.check(s, [chosen]) * unit
        return on_scale, on_scale / unit, True
    if isinstance(levels, int | np.integer) and not isinstance(levels, bool):
        if levels < 1:
            raise SpectralError(f"levels={levels}: must be at least 1")
        on_scale = filter.check(s, filter.grid(s, int(levels)))
    else:
        on_scale = filter.check(s, np.asarray(levels, dtype=np.float64)) * unit
    return on_scale, on_scale / unit, False


def _fixed(filter: Filter, s: Array, given: dict[str, float], scale: float) -> float:
    if len(given) > 1:
        raise SpectralError(f"give one of {' and '.join(given)}, not both")
    ((name, value),) = given.items()
    if name == filter.parameter:
        return value
    if name == "lam" and isinstance(filter, TSVD):
        if not (np.isfinite(value) and value >= 0):
            raise SpectralError(f"lam={value:g}: must be finite and not negative")
        return filter.components(s, scale * value)
    raise SpectralError(
        f"the filter {filter.name!r} has no parameter {name!r}: its own is {filter.parameter!r}"
    )
