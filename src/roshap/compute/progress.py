"""Progress of replicates: a bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self, TextIO

from tqdm import tqdm


class Progress:
    """Says how many replicates are done, how fast they go, and how long the rest will take.

    Parameters
    ----------
    label
        What is being computed, e.g. the experiment's name; starts each line.
    every
        Seconds between two lines where the stream is not a terminal.
    stream
        Where to write; standard error by default.
    quiet
        Write nothing at all.
    """

    def __init__(
        self,
        label: str = "bootstrap",
        *,
        every: float = 10.0,
        stream: TextIO | None = None,
        quiet: bool = False,
    ) -> None:
        self.label = label
        self.every = every
        self.quiet = quiet
        self._stream = sys.stderr if stream is None else stream
        self._bar: tqdm | None = None
        self._total = self._done = self._resumed = 0
        self._started = self._last_line = 0.0

    def start(self, total: int, done: int = 0, *, resumed: bool = True) -> None:
        """Begin: ``total`` replicates are wanted, ``done`` of them were found finished.

        ``resumed`` says whether an earlier study made those, which a person should be told.
        """
        self._total, self._done, self._resumed = total, done, done
        self._started = self._last_line = time.monotonic()
        if done and resumed:
            self.say(f"resuming: {done} of {total} runs found")
        if not self.quiet and self._stream.isatty():
            self._bar = tqdm(
                total=total, initial=done, desc=self.label, unit="run", file=self._stream
            )

    def advance(self) -> None:
        """Count one more finished replicate."""
        self._done += 1
        if self._bar is not None:
            self._bar.update()
        elif time.monotonic() - self._last_line >= self.every or self._done == self._total:
            self._last_line = time.monotonic()
            self.say(self._status())

    def say(self, message: str) -> None:
        """Write one line without disturbing the bar."""
        if not self.quiet:
            tqdm.write(f"{self.label}: {message}", file=self._stream)
            self._stream.flush()

    def close(self) -> None:
        """End the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _status(self) -> str:
        elapsed = time.monotonic() - self._started
        rate = (self._done - self._resumed) / max(elapsed, 1e-9)
        left = (self._total - self._done) / rate
        return (
            f"{self._done}/{self._total} runs, {rate:.2f} runs/s, "
            f"{tqdm.format_interval(elapsed)} so far, {tqdm.format_interval(left)} left"
        )
