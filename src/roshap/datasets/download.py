"""One verified file from a mirror, the cache or the web: never a half one, never a wrong one."""

from __future__ import annotations

import hashlib
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from roshap.datasets.spec import SourceSpec, UrlSpec
from roshap.errors import FetchError, OutputError

if TYPE_CHECKING:
    import requests

Progress = Callable[[str, int, int | None], None]
"""Called with the file's name, the bytes that are there, and their total if it is known."""

Accept = Callable[[Path], str | None]
"""Judges a file that has no checksum: ``None``, or why it is refused."""

_CHUNK = 1 << 16


@dataclass(frozen=True)
class Limits:
    """Patience with a server.

    Attributes
    ----------
    connect, silence
        Seconds until a connection must stand, and between two pieces of data.
    window, window_bytes
        In every ``window`` seconds at least ``window_bytes`` must come: a server that trickles is
        as useless as a silent one.
    attempts
        How often a transfer that breaks off is taken up again.
    """

    connect: float = 10.0
    silence: float = 30.0
    window: float = 60.0
    window_bytes: int = 100_000
    attempts: int = 3


@dataclass(frozen=True)
class Obtained:
    """A verified file: path, origin (``mirror``, ``cache`` or a URL) and sha256."""

    path: Path
    origin: str
    sha256: str


class _RefusedError(Exception):
    """Why one candidate did not serve."""


class _BrokenError(Exception):
    """A transfer that began and broke off; what came is kept."""


def obtain(
    source: SourceSpec,
    dataset: str,
    *,
    mirror: Path | None,
    cache: Path,
    accept: Accept | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Obtained:
    """Get one file of a data set: ``MIRROR/<dataset>/<file>``, else the cache, else each URL.

    A file from a URL lies in ``cache/<dataset>/``: ``NAME.*.part`` while it comes (a broken
    download goes on from there, if the server can), ``NAME`` once it is verified, and
    ``NAME.rejected`` if it is not what was promised. A mirror is only read.

    Parameters
    ----------
    source
        The file, its addresses and checksums.
    dataset
        Name of the data set.
    mirror
        Folder of a mirror, or ``None``.
    cache
        Folder of verified downloads.
    accept
        Judge for candidates without a checksum.
    limits
        Patience with each server.
    progress
        Told about each piece that comes.

    Raises
    ------
    FetchError
        No source served: one line with each source and why, and how to give a mirror.
    OutputError
        The cache cannot be written.
    """
    limits = limits or Limits()
    reasons: list[str] = []
    if mirror is not None:
        path = mirror / dataset / source.file
        reason = _wrong(path, source, source.sha256, accept)
        if reason is None:
            return Obtained(path, "mirror", _sha256(path))
        reasons.append(f"mirror {path}: {reason}")
    if source.urls:
        target = cache / dataset / source.file
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(target.with_name(f"{target.name}.lock")):
                found = _from_cache(source, target, accept)
                return found or _from_web(source, target, accept, limits, progress, reasons)
        except OSError as error:
            raise OutputError(f"cannot write {target}: {error.strerror or error}") from None
        except _RefusedError:
            pass
    elif mirror is None:
        reasons.append("it has no address")
    wanted = f"{dataset}/{source.file}"
    raise FetchError(
        f"{dataset}: cannot get {source.file}: {'; '.join(reasons)}. If you have the file, put it "
        f"at DIR/{wanted} and give the folder: ROSHAP_MIRROR=DIR or fetch.mirror=DIR"
    )


def _from_cache(source: SourceSpec, target: Path, accept: Accept | None) -> Obtained | None:
    if not target.is_file():
        return None
    checksums = dict.fromkeys([source.sha256, *(c.sha256 for c in source.candidates)])
    if any(_wrong(target, source, sha256, accept) is None for sha256 in checksums):
        return Obtained(target, "cache", _sha256(target))
    target.replace(_rejected(target))
    return None


def _from_web(
    source: SourceSpec,
    target: Path,
    accept: Accept | None,
    limits: Limits,
    progress: Progress | None,
    reasons: list[str],
) -> Obtained:
    def report(done: int, total: int | None) -> None:
        if progress is not None:
            progress(source.file, done, total)

    for candidate in source.candidates:
        try:
            _download(candidate, source, target, accept, limits, report)
        except _RefusedError as refused:
            reasons.append(f"{candidate.url}: {refused}")
        else:
            return Obtained(target, candidate.url, _sha256(target))
    raise _RefusedError


def _download(
    candidate: UrlSpec,
    source: SourceSpec,
    target: Path,
    accept: Accept | None,
    limits: Limits,
    report: Callable[[int, int | None], None],
) -> None:
    # Each address has its own partial file: two hosts may serve different bytes.
    mark = hashlib.sha256(candidate.url.encode()).hexdigest()[:8]
    part = target.with_name(f"{target.name}.{mark}.part")
    resumed = _transfer(candidate.url, part, limits, report)
    reason = _wrong(part, source, candidate.sha256, accept)
    if reason is not None and resumed:
        # The file may have changed on the server between the two halves: once more, whole.
        part.unlink()
        _transfer(candidate.url, part, limits, report)
        reason = _wrong(part, source, candidate.sha256, accept)
    if reason is not None:
        rejected = _rejected(target)
        part.replace(rejected)
        raise _RefusedError(f"{reason}; set aside as {rejected}")
    part.replace(target)


def _transfer(
    url: str, part: Path, limits: Limits, report: Callable[[int, int | None], None]
) -> bool:
    """Bring ``part`` to its full length; whether it was put together from several pieces."""
    import requests
    from urllib3.exceptions import HTTPError

    for attempt in range(1, limits.attempts + 1):
        offset = part.stat().st_size if part.exists() else 0
        try:
            return _stream(url, part, offset, limits, report)
        except (_BrokenError, requests.RequestException, HTTPError) as error:
            come = (part.stat().st_size if part.exists() else 0) - offset
            if come <= 0 or attempt == limits.attempts:
                raise _RefusedError(_why(error, limits)) from None
    raise AssertionError("unreachable: the last attempt returns or raises")


def _stream(
    url: str, part: Path, offset: int, limits: Limits, report: Callable[[int, int | None], None]
) -> bool:
    import requests

    headers = {"Accept-Encoding": "identity", "User-Agent": "roshap"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
    timeout = (limits.connect, limits.silence)
    with requests.get(url, headers=headers, stream=True, timeout=timeout) as response:
        if response.status_code == 416 and offset:
            return True  # nothing beyond what is there: the checksum decides
        if response.status_code not in (200, 206):
            raise _RefusedError(f"HTTP {response.status_code} {response.reason}")
        if response.status_code == 206:
            served = response.headers.get("Content-Range", "")
            if not served.startswith(f"bytes {offset}-"):
                raise _RefusedError(f"asked for bytes from {offset}, was offered {served!r}")
        else:
            offset = 0  # the server cannot go on, or nothing was there
        with part.open("ab" if offset else "wb") as stream:
            _pump(response, stream, offset, limits, report)
    return offset > 0


def _pump(
    response: requests.Response,
    stream: Any,
    offset: int,
    limits: Limits,
    report: Callable[[int, int | None], None],
) -> None:
    from urllib3.exceptions import ProtocolError

    length = response.headers.get("Content-Length", "")
    encoded = "Content-Encoding" in response.headers  # then the length is not that of the file
    total = offset + int(length) if length.isdigit() and not encoded else None
    done = mark = offset
    deadline = time.monotonic() + limits.window
    broken = False
    report(done, total)
    try:
        # read1 returns what has come; read would wait for a full chunk of a trickle.
        while piece := response.raw.read1(_CHUNK, decode_content=True):
            stream.write(piece)
            done += len(piece)
            report(done, total)
            if time.monotonic() > deadline:
                if done - mark < limits.window_bytes:
                    raise _RefusedError(f"too slow: {done - mark} bytes in {limits.window:g} s")
                mark, deadline = done, time.monotonic() + limits.window
    except ProtocolError:
        broken = True
    if broken or (total is not None and done < total):
        raise _BrokenError(f"broke off after {done} of {total or 'unknown'} bytes")


def _wrong(path: Path, source: SourceSpec, sha256: str | None, accept: Accept | None) -> str | None:
    """Why a file is not the one that was promised, or ``None`` if it is."""
    if not path.is_file():
        return "no such file"
    try:
        if sha256 is not None:
            found = _sha256(path)
            if found != sha256:
                return f"refused: its sha256 is {found}, expected {sha256}"
        if source.members:
            return _wrong_member(path, source)
        if sha256 is None:
            return accept(path) if accept is not None else "refused: no checksum to verify it"
    except OSError as error:
        return error.strerror or str(error)
    return None


def _wrong_member(path: Path, source: SourceSpec) -> str | None:
    """Check the archive's members by reading them; nothing is extracted."""
    try:
        with zipfile.ZipFile(path) as archive:
            for member, expected in source.members.items():
                with archive.open(member) as stream:
                    found = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]  # a ZipExtFile is binary and readable
                if found != expected:
                    return f"refused: sha256 of member {member} is {found}, expected {expected}"
    except KeyError:
        return f"refused: the archive has no member {member}"
    except (zipfile.BadZipFile, RuntimeError, EOFError) as error:
        return f"refused: not a readable zip archive ({error})"
    return None


def _sha256(path: Path) -> str:
    import pooch

    digest: str = pooch.file_hash(str(path), alg="sha256")
    return digest


def _rejected(target: Path) -> Path:
    return target.with_name(f"{target.name}.rejected")


def _why(error: BaseException, limits: Limits) -> str:
    """Say a network error in a few words: those of the innermost system error, if there is one."""
    import requests
    from urllib3.exceptions import ReadTimeoutError

    if isinstance(error, requests.ConnectTimeout):
        return f"no connection within {limits.connect:g} s"
    if isinstance(error, (requests.ReadTimeout, ReadTimeoutError)):
        return f"no data for {limits.silence:g} s"
    if isinstance(error, requests.TooManyRedirects):
        return "too many redirects"
    inner: BaseException | None = error
    said = str(error)
    while inner is not None:
        if isinstance(inner, OSError) and inner.strerror:
            said = str(inner.strerror)
        inner = inner.__cause__ or inner.__context__
    return " ".join(said.split())[:200]
