"""The rankers by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from roshap.baselines.base import Ranker
from roshap.baselines.gain import Gain
from roshap.baselines.information_gain import InformationGain
from roshap.baselines.lime import Lime
from roshap.baselines.permutation import Permutation
from roshap.baselines.single_shap import SingleShap
from roshap.errors import ConfigError

#: In the paper's order; the last one is ours.
RANKERS: dict[str, Callable[..., Ranker]] = {
    "shap": SingleShap,
    "gain": Gain,
    "lime": Lime,
    "ig": InformationGain,
    "permutation": Permutation,
}


def make_rankers(
    names: Sequence[str], options: Mapping[str, Mapping[str, Any]] | None = None
) -> list[Ranker]:
    """Return rankers by name, with their options.

    Raises
    ------
    ConfigError
        For an unknown name or option.
    """
    made = []
    for name in names:
        if name not in RANKERS:
            raise ConfigError(f"unknown ranker {name!r} (valid: {', '.join(RANKERS)})")
        try:
            made.append(RANKERS[name](**(options or {}).get(name, {})))
        except TypeError as error:
            raise ConfigError(f"ranker {name}: {error}") from error
    return made
