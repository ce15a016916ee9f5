import io
import re

from roshap.compute import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_lines_outside_a_terminal_say_done_total_rate_and_time_left():
    stream = io.StringIO()
    with Progress("golub-xgboost", every=0.0, stream=stream) as progress:
        progress.start(4)
        for _ in range(4):
            progress.advance()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4
    pattern = r"golub-xgboost: 2/4 runs, [\d.]+ runs/s, \d\d:\d\d so far, \d\d:\d\d left"
    assert re.fullmatch(pattern, lines[1])


def test_few_lines_and_always_the_last():
    stream = io.StringIO()
    with Progress("x", every=1e9, stream=stream) as progress:
        progress.start(50)
        for _ in range(50):
            progress.advance()
    (line,) = stream.getvalue().splitlines()
    assert line.startswith("x: 50/50 runs")


def test_resumed_runs_are_said_and_count_as_done_but_not_as_speed():
    stream = io.StringIO()
    with Progress("x", every=0.0, stream=stream) as progress:
        progress.start(100, 37)
        progress.advance()
    first, second = stream.getvalue().splitlines()
    assert first == "x: resuming: 37 of 100 runs found"
    assert second.startswith("x: 38/100 runs")


def test_bar_on_a_terminal():
    stream = Terminal()
    with Progress("x", stream=stream) as progress:
        progress.start(10, 4)
        for _ in range(6):
            progress.advance()
        progress.say("a line")
    assert "10/10" in stream.getvalue()
    assert "a line" in stream.getvalue()


def test_quiet_says_nothing():
    for stream in (io.StringIO(), Terminal()):
        with Progress("x", every=0.0, stream=stream, quiet=True) as progress:
            progress.start(2, 1)
            progress.advance()
            progress.say("no")
        assert stream.getvalue() == ""
