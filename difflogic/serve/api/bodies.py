"""Bodies of requests: JSON that is JSON, forms with files, all of it bounded; and what the document says of them."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import MISSING
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, get_origin

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from difflogic.config.fields import Table, plain
from difflogic.config.limits import Limits
from difflogic.config.request import Request as AnyRequest
from difflogic.config.request import SweepRequest, TrainRequest, options
from difflogic.errors import UsageError
from difflogic.serve.errors import ApiError, one_sentence
from difflogic.serve.store.jobs import JobRequest

Asked = TypeVar("Asked", bound=AnyRequest)
Submitted = tuple[Any, Mapping[str, UploadFile]]
"""A job and the files that came with it."""

JSON = "application/json"
FORM = "multipart/form-data"
FILES = (*(each.name for each in options(TrainRequest) if each.brought), "start_picture", "data", "labels")
"""Fields of a form that are files: two pictures, a rule, samples or a recording or a table, and the labels of an IDX
file of images."""


def kind(request: Request) -> str:
    """The media type of the body."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read(request: Request) -> Any:
    """What is in a JSON body. Raises ApiError."""
    # Another site's page can send text/plain without asking first: JSON under that name is refused.
    if kind(request) != JSON:
        raise ApiError(415, "unsupported_media_type", f"The body must be {JSON} or {FORM}.")
    return parsed(await request.body())


@asynccontextmanager
async def submission(request: Request) -> AsyncIterator[Submitted]:
    """A job as JSON, or as a form with files, which are there as long as the context lasts. Raises ApiError."""
    if kind(request) != FORM:
        yield await read(request), {}
        return
    async with request.form(max_files=len(FILES) + 1, max_fields=len(FILES) + 2, max_part_size=1 << 20) as form:
        yield await _read_form(form)


async def _read_form(form: FormData) -> Submitted:
    """`job` as JSON, and files."""
    unknown = sorted(set(form) - {"job", *FILES})
    if unknown:
        raise ApiError(422, "invalid_request", f"Unknown field {unknown[0][:80]!r}: expected job, {', '.join(FILES)}.")
    uploads = {}
    for name in FILES:
        # A field that comes twice is refused, and not decided by whichever is read last.
        for each in form.getlist(name):
            if not isinstance(each, UploadFile) or name in uploads:
                raise ApiError(422, "invalid_request", f"{name} must be one file.")
            uploads[name] = each
    parts = form.getlist("job")
    if len(parts) != 1:
        raise ApiError(422, "invalid_request", "The form needs one field `job`, with JSON in it.")
    part = parts[0]
    text = await part.read() if isinstance(part, UploadFile) else part.encode("utf-8", "surrogatepass")
    return parsed(text), uploads


@contextmanager
def on_disk(uploads: Mapping[str, UploadFile]) -> Iterator[dict[str, Path]]:
    """The files on the disk, for as long as the context lasts."""
    if not uploads:
        yield {}
        return
    with TemporaryDirectory(prefix="difflogic-upload-") as folder:
        paths = {}
        for name, upload in uploads.items():
            # The name is one of FILES, never the one that the client gave.
            paths[name] = Path(folder) / name
            upload.file.seek(0)
            paths[name].write_bytes(upload.file.read())
        yield paths


def parsed(body: bytes) -> Any:
    """Return JSON as the standard has it: no NaN, no half of a character, no endless nesting. Raises ApiError."""
    try:
        data = json.loads(body, parse_constant=_refused)
        # A lone half of a surrogate pair passes `loads`, and would fail much later, when the job is written.
        json.dumps(data, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:  # UnicodeError is a ValueError
        raise ApiError(400, "not_json", "The body is not valid JSON.") from error
    return data


def _refused(constant: str) -> Any:
    raise ValueError(constant)


async def told(part: type[Asked], request: Request) -> Asked:
    """Return what a body asks for; without a body nothing special. Raises ApiError."""
    has_body = "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"
    return asked(part, await read(request) if has_body else {})


def asked(part: type[Asked], data: Any) -> Asked:
    """A request as JSON holds it. Raises ApiError."""
    if not isinstance(data, dict):
        raise ApiError(422, "invalid_request", "The request must be an object.")
    try:
        return part.from_dict(data)
    except UsageError as error:
        raise ApiError(422, "invalid_request", one_sentence(str(error))) from error


# their schemas ------------------------------------------------------------------------------------------------------

NO_LIMITS = Limits("anything", lambda _: True)
_TYPES: dict[Any, str] = {bool: "boolean", int: "integer", float: "number", object: "object", Table: "object"}


def schema_of(part: type) -> dict[str, Any]:
    """A request, or a part of one, in JSON Schema."""
    properties, required = {}, []
    for each in options(part):
        if each.brought or each.here:
            continue
        told: dict[str, Any] = {"description": each.words}
        if issubclass(kind := get_origin(each.kind) or each.kind, SweepRequest):
            found = schema_of(kind)
        else:
            found = {"type": _TYPES.get(kind, "array" if kind is tuple else "object" if kind is Mapping else "string")}
            found |= (each.sent or each.limits or NO_LIMITS).schema
        if each.default is None:
            found = {"anyOf": [found, {"type": "null"}]}
        if each.default is MISSING:
            required.append(each.name)
        else:
            told["default"] = plain(each.default)
        properties[each.name] = found | told
    about = (part.__doc__ or "").partition("\n")[0]
    return {"type": "object", "description": about, "properties": properties, "required": required,
            "additionalProperties": False}  # fmt: skip


def job_body() -> dict[str, Any]:
    """`openapi_extra` of an address that takes a job as JSON, or as a form with files."""
    # FastAPI reads either JSON or a form. This address takes both, so that its body is described by hand.
    job = schema_of(JobRequest)
    files = {name: {"type": "string", "format": "binary"} for name in FILES}
    form = {"type": "object", "properties": {"job": job, **files}, "required": ["job"], "additionalProperties": False}
    content = {
        "application/json": {"schema": job},
        "multipart/form-data": {"schema": form, "encoding": {"job": {"contentType": "application/json"}}},
    }
    return {"requestBody": {"required": True, "content": content}}


def action_body(part: type) -> dict[str, Any]:
    """`openapi_extra` of an address that makes a job of another one."""
    return {"requestBody": {"required": False, "content": {"application/json": {"schema": schema_of(part)}}}}
