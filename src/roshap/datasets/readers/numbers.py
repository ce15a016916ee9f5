"""How text becomes a float: to the nearest double, by every supported pandas."""

from __future__ import annotations

from typing import Any

import pandas as pd

_VERSION = tuple(int(part) for part in pd.__version__.split(".")[:2])

# Before pandas 3.1 the default parser may be off in the last bit, and the table's digest with it;
# from 3.1 the default is exact and the option is deprecated.
EXACT: dict[str, Any] = {} if _VERSION >= (3, 1) else {"float_precision": "round_trip"}
