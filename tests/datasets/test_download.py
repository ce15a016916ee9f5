"""Downloads against a real HTTP server on loopback that is good, broken, slow or lying."""

from __future__ import annotations

import hashlib
import io
import socket
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from roshap.datasets import Limits, SourceSpec
from roshap.datasets.download import Obtained, obtain
from roshap.errors import FetchError, OutputError

BODY = bytes(range(256)) * 2000  # 512 kB: several pieces
SHA = hashlib.sha256(BODY).hexdigest()
QUICK = Limits(connect=2.0, silence=0.3, window=0.3, window_bytes=1000, attempts=3)


def source(*urls: Any, sha256: str | None = SHA, members: dict[str, str] | None = None):
    return SourceSpec(file="f.bin", urls=urls, sha256=sha256, members=members or {})


def get(spec: SourceSpec, cache: Path, mirror: Path | None = None, **options: Any) -> Obtained:
    return obtain(spec, "set", mirror=mirror, cache=cache, limits=QUICK, **options)


def names(cache: Path) -> list[str]:
    return sorted(p.name for p in (cache / "set").iterdir() if p.suffix != ".lock")


def in_mirror(folder: Path, content: bytes) -> Path:
    (folder / "set").mkdir(parents=True)
    (folder / "set" / "f.bin").write_bytes(content)
    return folder


def test_a_whole_file(server, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    url = server.add("/f", BODY)
    found = get(source(url), tmp_path, progress=lambda *state: seen.append(state))
    assert found == Obtained(tmp_path / "set" / "f.bin", url, SHA)
    assert found.path.read_bytes() == BODY
    assert names(tmp_path) == ["f.bin"]
    assert seen[0] == ("f.bin", 0, len(BODY))
    assert seen[-1] == ("f.bin", len(BODY), len(BODY))


def test_without_a_length(server, tmp_path: Path) -> None:
    url = server.add("/f", BODY, length=False)
    assert get(source(url), tmp_path).path.read_bytes() == BODY


def test_the_cache_is_used_and_verified(server, tmp_path: Path) -> None:
    url = server.add("/f", BODY)
    get(source(url), tmp_path)
    assert get(source(url), tmp_path).origin == "cache"
    assert len(server.requests) == 1
    (tmp_path / "set" / "f.bin").write_bytes(b"rotten")
    assert get(source(url), tmp_path).origin == url
    assert names(tmp_path) == ["f.bin", "f.bin.rejected"]


def test_redirects_are_followed(server, tmp_path: Path) -> None:
    target = server.add("/f", BODY)
    url = server.add("/old", status=302, location=target)
    assert get(source(url), tmp_path).origin == url


def test_endless_redirects(server, tmp_path: Path) -> None:
    url = server.add("/loop", status=302, location="/loop")
    with pytest.raises(FetchError, match="/loop: too many redirects"):
        get(source(url), tmp_path)


def test_the_next_address_serves_after_a_404(server, tmp_path: Path) -> None:
    good = server.add("/f", BODY)
    assert get(source(server.url + "/none", good), tmp_path).origin == good


def test_a_broken_transfer_goes_on_by_itself(server, tmp_path: Path) -> None:
    url = server.add("/f", BODY, stop_after=200_000)
    assert get(source(url), tmp_path).path.read_bytes() == BODY
    assert server.requests == [
        ("/f", None),
        ("/f", "bytes=200000-"),
        ("/f", "bytes=400000-"),
    ]


def test_a_broken_download_is_resumed_by_the_next_command(server, tmp_path: Path) -> None:
    url = server.add("/f", BODY, stop_after=100_000)
    with pytest.raises(FetchError, match="/f: broke off after 300000 of 512000 bytes"):
        get(source(url), tmp_path)
    assert [Path(name).suffix for name in names(tmp_path)] == [".part"]
    server.add("/f", BODY)
    assert get(source(url), tmp_path).path.read_bytes() == BODY
    assert server.requests[-1] == ("/f", "bytes=300000-")
    assert names(tmp_path) == ["f.bin"]


def test_a_server_that_cannot_go_on_sends_all_again(server, tmp_path: Path) -> None:
    url = server.add("/f", BODY, ranges=False, stop_after=100_000)
    with pytest.raises(FetchError, match="broke off"):
        get(source(url), tmp_path)
    server.add("/f", BODY, ranges=False)
    assert get(source(url), tmp_path).path.read_bytes() == BODY


def test_a_complete_part_is_only_verified(server, tmp_path: Path) -> None:
    url = server.add("/f", BODY, stop_after=100_000)
    with pytest.raises(FetchError):
        get(source(url), tmp_path)
    (part,) = (tmp_path / "set").glob("*.part")
    part.write_bytes(BODY)  # as if killed between the last byte and the rename
    assert get(source(url), tmp_path).path.read_bytes() == BODY


def test_a_file_that_changed_between_the_halves_is_loaded_whole(server, tmp_path: Path) -> None:
    old = bytes(len(BODY))
    url = server.add("/f", old, stop_after=100_000)
    with pytest.raises(FetchError):
        get(source(url), tmp_path)
    server.add("/f", BODY)
    assert get(source(url), tmp_path).path.read_bytes() == BODY
    assert names(tmp_path) == ["f.bin"]


def test_a_wrong_checksum_is_refused_and_set_aside(server, tmp_path: Path) -> None:
    url = server.add("/f", b"<html>log in to the Wi-Fi</html>")
    with pytest.raises(FetchError, match=f"refused: its sha256 is .*, expected {SHA}; set aside"):
        get(source(url), tmp_path)
    assert names(tmp_path) == ["f.bin.rejected"]


def test_a_truncated_file_without_a_length_is_refused(server, tmp_path: Path) -> None:
    url = server.add("/f", BODY, length=False, stop_after=1000)
    with pytest.raises(FetchError, match="refused: its sha256"):
        get(source(url), tmp_path)
    assert names(tmp_path) == ["f.bin.rejected"]


def test_a_silent_server(server, tmp_path: Path) -> None:
    url = server.add("/f", BODY, silent=True)
    with pytest.raises(FetchError, match=r"/f: no data for 0.3 s"):
        get(source(url), tmp_path)


def test_a_trickling_server(server, tmp_path: Path) -> None:
    url = server.add("/f", BODY, trickle=0.02)
    with pytest.raises(FetchError, match=r"/f: too slow: \d+ bytes in 0.3 s"):
        get(source(url), tmp_path)


def test_a_slow_but_steady_server_is_waited_for(server, tmp_path: Path) -> None:
    body = BODY[:40]
    url = server.add("/f", body, trickle=0.02)
    spec = source(url, sha256=hashlib.sha256(body).hexdigest())
    patient = Limits(silence=5.0, window=0.2, window_bytes=1)
    assert obtain(spec, "set", mirror=None, cache=tmp_path, limits=patient).origin == url


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_all_unreachable_is_one_line_with_each_source_and_what_to_do(
    server, tmp_path: Path
) -> None:
    refused = f"http://127.0.0.1:{free_port()}/f"
    missing = server.url + "/none"
    broken = server.add("/500", status=500)
    mirror = tmp_path / "mirror"
    with pytest.raises(FetchError) as caught:
        get(source(refused, missing, broken), tmp_path / "cache", mirror)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("set: cannot get f.bin: mirror ")
    for part in (
        f"mirror {mirror}/set/f.bin: no such file",
        f"{refused}: Connection refused",
        f"{missing}: HTTP 404 Not Found",
        f"{broken}: HTTP 500",
        "DIR/set/f.bin",
        "ROSHAP_MIRROR=DIR or fetch.mirror=DIR",
    ):
        assert part in message


def test_a_host_that_does_not_exist(tmp_path: Path, monkeypatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(FetchError, match=r"http://no-such-host.invalid/f: \S"):
        get(source("http://no-such-host.invalid/f"), tmp_path)


def test_the_mirror_comes_first_and_is_only_read(server, tmp_path: Path) -> None:
    mirror = in_mirror(tmp_path / "mirror", BODY)
    found = get(source(server.add("/f", BODY)), tmp_path / "cache", mirror)
    assert (found.origin, found.path) == ("mirror", mirror / "set" / "f.bin")
    assert server.requests == []
    assert not (tmp_path / "cache").exists()


def test_a_wrong_file_in_the_mirror_is_passed_over(server, tmp_path: Path) -> None:
    mirror = in_mirror(tmp_path / "mirror", b"wrong")
    url = server.add("/f", BODY)
    assert get(source(url), tmp_path / "cache", mirror).origin == url
    assert (mirror / "set" / "f.bin").read_bytes() == b"wrong"


def test_a_wrong_mirror_file_without_another_source(tmp_path: Path) -> None:
    mirror = in_mirror(tmp_path / "mirror", b"wrong")
    with pytest.raises(FetchError, match=r"mirror .*: refused: its sha256 is"):
        get(source(), tmp_path / "cache", mirror)


def test_mirror_only_without_a_mirror(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"it has no address.*ROSHAP_MIRROR=DIR"):
        get(source(), tmp_path)


def archive(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return buffer.getvalue()


GOOD_MEMBER = {"data": hashlib.sha256(b"good").hexdigest()}


def test_an_archive_of_unknown_checksum_is_judged_by_its_members(server, tmp_path: Path) -> None:
    other = {"url": server.add("/other", archive(data=b"good", more=b"x")), "sha256": None}
    spec = source(other, sha256=SHA, members=GOOD_MEMBER)
    assert get(spec, tmp_path).origin == other["url"]
    assert get(spec, tmp_path).origin == "cache"


@pytest.mark.parametrize(
    "body, message",
    [
        (archive(data=b"bad"), "refused: sha256 of member data is"),
        (archive(other=b"good"), "refused: the archive has no member data"),
        (b"no archive", "refused: not a readable zip"),
        (archive(data=b"good")[:-30], "refused: not a readable zip"),
    ],
    ids=["wrong member", "missing member", "no zip", "cut zip"],
)
def test_an_archive_with_wrong_members(server, tmp_path: Path, body: bytes, message: str) -> None:
    other = {"url": server.add("/zip", body), "sha256": None}
    with pytest.raises(FetchError, match=message):
        get(source(other, members=GOOD_MEMBER), tmp_path)
    assert names(tmp_path) == ["f.bin.rejected"]


def test_a_file_without_any_checksum_needs_a_judge(server, tmp_path: Path) -> None:
    other = {"url": server.add("/f", b"content"), "sha256": None}
    with pytest.raises(FetchError, match="refused: no checksum to verify it"):
        get(source(other), tmp_path)
    with pytest.raises(FetchError, match="not to my taste"):
        get(source(other), tmp_path, accept=lambda path: "not to my taste")
    assert get(source(other), tmp_path, accept=lambda path: None).origin == other["url"]


def test_two_at_once_download_once(server, tmp_path: Path) -> None:
    url = server.add("/f", BODY)
    found: list[Obtained] = []
    threads = [
        threading.Thread(target=lambda: found.append(get(source(url), tmp_path))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(f.origin for f in found) == ["cache", "cache", "cache", url]
    assert len(server.requests) == 1


def test_a_cache_that_cannot_be_written(server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match=r"cannot write .*f.bin"):
        get(source(server.add("/f", BODY)), tmp_path / "file")
