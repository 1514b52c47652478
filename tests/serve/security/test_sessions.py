"""Sessions of browsers: cookies, and the token that writes carry."""

from collections.abc import Iterator

import httpx
import pytest

from difflogic.serve.api.auth import COOKIE, CSRF_HEADER
from difflogic.serve.api.tokens import Tokens
from tests.serve.live import ANN, API, BEN, Live, error


@pytest.fixture
def page(live: Live) -> Iterator[httpx.Client]:
    with live.client(None) as browser:
        answer = browser.post("/session", json={"token": ANN})
        assert (answer.status_code, answer.content) == (204, b"")
        cookie = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
        assert ANN not in cookie
        yield browser


def test_a_session_reads_and_writes_need_the_csrf_token(page: httpx.Client) -> None:
    session = page.get("/session").json()
    assert session["owner"] == "ann"
    request = {"preset": "checkerboard"}
    for headers in ({}, {CSRF_HEADER: "0" * 64}, {CSRF_HEADER: "é".encode()}):
        error(page.post("/jobs", json=request, headers=headers), 403, "csrf")
    made = page.post("/jobs", json=request, headers={CSRF_HEADER: session["csrf"]})
    assert made.status_code == 201
    error(page.delete(f"/jobs/{made.json()['id']}"), 403, "csrf")


def test_behind_tls_the_cookie_is_for_tls_alone(live: Live) -> None:
    headers = {"X-Forwarded-Proto": "https"}
    answer = httpx.post(live.address + API + "/session", json={"token": ANN}, headers=headers)
    assert "Secure" in answer.headers["set-cookie"].split("; ")


def test_a_session_that_ended_is_over(page: httpx.Client) -> None:
    cookie = page.cookies[COOKIE]
    csrf = page.get("/session").json()["csrf"]
    assert page.delete("/session", headers={CSRF_HEADER: csrf}).status_code == 204
    page.cookies.clear()
    error(page.get("/jobs", headers={"Cookie": f"{COOKIE}={cookie}"}), 401, "unauthorized")


@pytest.mark.parametrize("cookie", ["", "ann", "ann.", "ann.forged", "nobody.forged", "." * 300, "ann.\xe9"])
def test_forged_cookies_are_refused(live: Live, cookie: str) -> None:
    headers = {"Cookie": f"{COOKIE}={cookie}".encode("latin-1")}
    error(httpx.get(live.address + API + "/jobs", headers=headers), 401, "unauthorized")


def test_the_store_has_no_cookie_and_a_changed_token_ends_its_sessions(live: Live, page: httpx.Client) -> None:
    cookie = page.cookies[COOKIE]
    known = Tokens({"ann": ANN})
    signature = known.sign("ann", f"session:{cookie}")
    assert signature is not None
    assert live.store.session_owner(signature) == "ann"
    assert cookie.encode() not in b"".join(path.read_bytes() for path in live.store.folder.glob("store.sqlite3*"))
    assert Tokens({"ann": BEN}).sign("ann", f"session:{cookie}") != signature
    assert Tokens({"ben": BEN}).sign("ann", f"session:{cookie}") is None
