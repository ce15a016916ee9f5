"""``python -m roshap``."""

from __future__ import annotations

import sys

from roshap.cli import main

if __name__ == "__main__":
    sys.exit(main())
