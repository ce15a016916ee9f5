"""Helpers of the data set tests: specs, tables, and a real HTTP server on loopback."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from roshap.datasets import DatasetSpec

CONF = Path(__file__).parents[2] / "conf" / "dataset"


@pytest.fixture
def committed_spec() -> Callable[[str], DatasetSpec]:
    def read(name: str) -> DatasetSpec:
        return DatasetSpec.model_validate(yaml.safe_load((CONF / f"{name}.yaml").read_text()))

    return read


@pytest.fixture
def frame() -> pd.DataFrame:
    """20 rows: three numeric features and a text target of two classes."""
    rng = np.random.default_rng(7)
    table = pd.DataFrame(rng.normal(size=(20, 3)), columns=["a", "b", "c"])
    table["y"] = ["no", "yes"] * 10
    return table


@pytest.fixture
def mirror() -> Path:
    folder = os.environ.get("ROSHAP_MIRROR")
    if not folder:
        pytest.skip("ROSHAP_MIRROR is not set: the real data are not here")
    return Path(folder)


@dataclass
class Behaviour:
    """How the server answers one path."""

    body: bytes = b""
    status: int = 200
    ranges: bool = True
    stop_after: int | None = None  # bytes of one answer, then the connection is cut
    trickle: float | None = None  # seconds between single bytes
    silent: bool = False  # headers, then nothing
    location: str | None = None
    length: bool = True  # whether Content-Length is sent


@dataclass
class Server:
    url: str
    paths: dict[str, Behaviour]
    requests: list[tuple[str, str | None]] = field(default_factory=list)  # path, Range
    closing: threading.Event = field(default_factory=threading.Event)

    def add(self, path: str, body: bytes = b"", **behaviour: Any) -> str:
        """Serve ``body`` under ``path``; its full address."""
        self.paths[path] = Behaviour(body, **behaviour)
        return self.url + path


class Handler(BaseHTTPRequestHandler):
    server_state: Server

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""

    def do_GET(self) -> None:  # the name that http.server calls
        state = self.server_state
        wanted = self.headers.get("Range")
        state.requests.append((self.path, wanted))
        answer = state.paths.get(self.path, Behaviour(status=404))
        body, start = answer.body, 0
        if wanted and answer.ranges and answer.status == 200:
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted).group(1))
        if start and start >= len(body):
            self.send_response(416)
            self.end_headers()
            return
        self.send_response(206 if start else answer.status)
        if answer.location:
            self.send_header("Location", answer.location)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        body = body[start:]
        if answer.length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self._send(body, answer)
        except OSError:
            return  # the client gave up, which is what these tests are about

    def _send(self, body: bytes, answer: Behaviour) -> None:
        if answer.silent:
            self.server_state.closing.wait(10)
        elif answer.trickle is not None:
            for byte in body:
                self.wfile.write(bytes([byte]))
                time.sleep(answer.trickle)
        else:
            self.wfile.write(body[: answer.stop_after])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    handler = type("Bound", (Handler,), {})
    listener = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    listener.daemon_threads = True
    state = Server(url=f"http://127.0.0.1:{listener.server_address[1]}", paths={})
    handler.server_state = state
    thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield state
    state.closing.set()
    listener.shutdown()
    listener.server_close()
