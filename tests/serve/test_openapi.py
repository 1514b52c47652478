"""The OpenAPI document is true: whatever it allows, and whatever it forbids, is answered as it says."""

import os

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode

from difflogic.serve.api.tokens import OPERATOR, Tokens
from tests.sampled import sampled
from tests.serve.live import ANN, API, Live, shared, submit

TRANSPORT = ("connection", "content-length", "expect", "host", "transfer-encoding", "upgrade")
"""Headers of HTTP itself: a wrong one is answered before any address is looked up, which no document describes."""
CONFIG = {
    "request-timeout": 600.0,  # seconds, so that only a request without end is one: machines differ
    "checks": {
        # What a configuration means is not in the document: a refusal of one is 422 too.
        "positive_data_acceptance": {"expected-statuses": ["2xx", "401", "404", "409", "422"]}
    },
}


# An operator, to whom nothing is forbidden: no refusal hides what comes after it.
live = shared(tokens=Tokens({"ann": ANN}, {"ann": [OPERATOR]}))


@pytest.fixture
def job(live: Live) -> str:
    """One of the test's own: another test may have deleted the last one."""
    with live.client() as client:
        return submit(client)["id"]


@pytest.fixture(scope="module")
def schema(live: Live) -> schemathesis.BaseSchema:
    document = httpx.get(live.address + "/openapi.json").json()
    return schemathesis.openapi.from_dict(document, config=schemathesis.Config.from_dict(CONFIG))


@pytest.mark.parametrize("examples", sampled((2, 100), {2}))
@pytest.mark.parametrize("mode", GenerationMode)
def test_every_address_keeps_to_the_document(
    live: Live, job: str, schema: schemathesis.BaseSchema, mode: GenerationMode, examples: int
) -> None:
    operations = [each.ok() for each in schema.get_all_operations()]
    assert len(operations) > 25
    asked = 0
    for operation in operations:
        if operation.path.endswith("/events"):  # it answers without end: the tests of events have it
            continue
        live.store.register_worker("cpu-1", "cpu", "a CPU", os.getpid(), ["cpu"])  # else the server is not ready

        @seed(8)
        @settings(max_examples=examples, deadline=None, database=None, phases=[Phase.generate],
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: Case) -> None:
            nonlocal asked
            assume(not any(header in case.headers for header in TRANSPORT))
            asked += 1
            if mode is GenerationMode.POSITIVE and asked % 2 and "job" in case.path_parameters:
                case.path_parameters["job"] = job
            answer = case.call_and_validate(base_url=live.address, headers={"Authorization": f"Bearer {ANN}"})
            # The checks ask without a token too, and with wrong ones: no address is locked out for that. Only a request
            # to sign in has a token in the body, here one that was made up.
            assert case.operation.path.endswith("/session") or answer.status_code not in (401, 403, 429)

        try:
            ask()
        except Unsatisfiable:  # an address that takes nothing cannot be asked wrongly
            assert mode is GenerationMode.NEGATIVE
            assert not operation.body
    assert asked > 10 * examples


def test_every_body_of_another_kind_is_refused_as_the_document_says(live: Live, job: str, schema) -> None:
    bodies = {(each.method, each.path) for each in (one.ok() for one in schema.get_all_operations()) if each.body}
    assert len(bodies) > 7
    with live.client() as client:
        for method, path in ((method.upper(), path.removeprefix(API)) for method, path in bodies):
            address = path.format(job=job, name="gpu", path="run/a.txt") + "?lease=1" * ("{path}" in path)
            for kind in ("text/plain", "application/octet-stream", "application/merge-patch+json", ""):
                if "{path}" in path and kind == "application/octet-stream":  # that is what it takes
                    continue
                answer = client.request(method, address, content=b"{}", headers={"Content-Type": kind})
                assert answer.status_code == 415, (method, path, kind, answer.text)


def test_a_file_has_a_kind_that_the_document_names(live: Live, job: str, schema) -> None:
    (operation,) = [one.ok() for one in schema.get_all_operations() if one.ok().path.endswith("/files/{name}")]
    named = operation.definition.raw["responses"]["200"]["content"]
    run = live.store.job_folder(job).run
    run.mkdir(parents=True, exist_ok=True)
    with live.client() as client:
        for name in ("a.json", "a.jsonl", "a.csv", "a.txt", "a.toml", "a.png", "a.gif", "a.svg", "a.safetensors"):
            (run / name).write_bytes(b"")
            assert client.get(f"/jobs/{job}/files/{name}").headers["content-type"] in named


def test_the_page_has_every_address_and_schema(live: Live) -> None:
    page = httpx.get(live.address + "/docs").text
    document = httpx.get(live.address + "/openapi.json").json()
    for path in document["paths"]:
        assert f"<code>{path}</code>" in page
    for name in document["components"]["schemas"]:
        assert f'id="{name}">' in page
