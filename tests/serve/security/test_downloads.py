"""Downloads: files of jobs, and archives as they are unpacked."""

import contextlib
import http.client
import io
import json
import stat
import zipfile
from pathlib import Path

import httpx
import pytest

from difflogic.errors import ServiceError, UsageError
from difflogic.serve.client import unpack
from tests.serve.live import ANN, API, Live, submit
from tests.serve.service import PATIENCE_S


@pytest.fixture
def kept(live: Live, client: httpx.Client) -> str:
    """A job with files, some of them not to be had."""
    job = submit(client)["id"]
    run = live.store.job_folder(job).run
    run.mkdir(parents=True)
    (run / "summary.txt").write_text("all is well\n")
    (run / ".lock").write_text("")
    (run / "circuit.json.tmp").write_text("half")
    (run / "inside").mkdir()
    (run / "link.txt").symlink_to(live.store.folder / "store.sqlite3")
    return job


@pytest.mark.parametrize("name", [
    ".lock", "circuit.json.tmp", "inside", "link.txt", "absent.txt", "..", "../run/summary.txt", "%00",
    "..%2f..%2fstore.sqlite3", "%2e%2e/%2e%2e/store.sqlite3", "..%5c..%5cstore.sqlite3", "%2fetc%2fpasswd",
    "summary.txt%00.png", "/etc/passwd",
])  # fmt: skip
def test_no_other_file_is_reached(live: Live, kept: str, name: str) -> None:
    status, body = raw(live, f"{API}/jobs/{kept}/files/{name}")
    assert status in (404, 422), body
    assert json.loads(body)["error"]["code"]


def raw(live: Live, path: str) -> tuple[int, bytes]:
    """A path exactly as it is written: other clients make dots disappear."""
    connection = http.client.HTTPConnection(live.address.removeprefix("http://"), timeout=PATIENCE_S)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Authorization": f"Bearer {ANN}"})
        answer = connection.getresponse()
        return answer.status, answer.read()


@pytest.mark.parametrize("job", ["..", "../..", "A" * 16, "a" * 15, "a" * 17, "%2e%2e", "aaaaaaaaaaaaaaa/", "1" * 16])
def test_invalid_id_is_not_found(live: Live, job: str) -> None:
    assert raw(live, f"{API}/jobs/{job}/log")[0] in (404, 422)


def test_files_have_their_media_types(client: httpx.Client, kept: str, live: Live) -> None:
    (live.store.job_folder(kept).run / "page.html").write_text("<script>alert(1)</script>")
    listed = client.get(f"/jobs/{kept}/files").json()["files"]
    assert [each["name"] for each in listed] == ["page.html", "summary.txt"]
    text = client.get(f"/jobs/{kept}/files/summary.txt")
    assert (text.text, text.headers["content-type"]) == ("all is well\n", "text/plain; charset=utf-8")
    page = client.get(f"/jobs/{kept}/files/page.html")
    assert page.headers["content-type"] == "application/octet-stream"
    assert page.headers["content-disposition"].startswith("attachment")
    (live.store.job_folder(kept).run / "circuit.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    drawing = client.get(f"/jobs/{kept}/files/circuit.svg")  # it opens, but runs and fetches nothing
    assert drawing.headers["content-disposition"].startswith("inline")
    assert drawing.headers["content-type"] == "image/svg+xml"
    policy = drawing.headers["content-security-policy"]
    assert {"sandbox", "default-src 'none'"} <= set(policy.split("; "))
    assert "script" not in policy
    (live.store.job_folder(kept).run / "circuit.svg").unlink()
    with zipfile.ZipFile(io.BytesIO(client.get(f"/jobs/{kept}/archive").content)) as archive:
        assert archive.namelist() == [f"{kept}/page.html", f"{kept}/summary.txt"]
        assert archive.testzip() is None


def archived(*members: tuple[str | zipfile.ZipInfo, bytes], compression: int = zipfile.ZIP_STORED) -> io.BytesIO:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for member, data in members:
            archive.writestr(member, data)
    return buffer


JOB = "a" * 16


def test_an_archive_is_unpacked(tmp_path: Path) -> None:
    file = archived((f"{JOB}/b.txt", b"b"), (f"{JOB}/a.txt", b"a"))
    assert unpack(file, JOB, tmp_path / "new" / "run") == ["a.txt", "b.txt"]
    assert (tmp_path / "new/run/a.txt").read_bytes() == b"a"
    with pytest.raises(UsageError, match="Expected an empty or new folder"):
        unpack(file, JOB, tmp_path / "new" / "run")


def test_an_archive_follows_a_link_to_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("far")
    unpack(archived((f"{JOB}/a.txt", b"a")), JOB, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far/a.txt").read_bytes() == b"a"


@pytest.mark.parametrize(
    "file",
    [
        archived((f"{JOB}/../../evil", b"x")),
        archived((f"{JOB}/ok.txt", b"x"), (f"../{JOB}/evil", b"x")),
        archived(("/etc/evil", b"x")),
        archived((f"{JOB}/inside/evil", b"x")),
        archived((f"{JOB}/.hidden", b"x")),
        archived((f"{JOB}\\evil", b"x")),
        archived((f"{'b' * 16}/evil", b"x")),
        archived((f"{JOB}/", b"")),
        archived((f"{JOB}/bomb", bytes(1 << 20)), compression=zipfile.ZIP_DEFLATED),
        io.BytesIO(b"no zip"),
    ],
)
def test_members_of_an_archive_are_checked_before_anything_is_written(tmp_path: Path, file: io.BytesIO) -> None:
    with pytest.raises(ServiceError, match="nothing was unpacked"):
        unpack(file, JOB, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_an_archive_leads_nowhere(tmp_path: Path) -> None:
    link = zipfile.ZipInfo(f"{JOB}/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    unpack(archived((link, b"/etc/passwd")), JOB, tmp_path / "run")
    assert not (tmp_path / "run/link").is_symlink()
    assert (tmp_path / "run/link").read_bytes() == b"/etc/passwd"
