"""Read request bodies, as strict JSON or as forms with files, and describe them for OpenAPI."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import MISSING
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, get_origin

from starlette.datastructures import FormData, Headers, UploadFile
from starlette.requests import Request

from difflogic.config.fields import Table, plain
from difflogic.config.limits import Limits
from difflogic.config.request import Request as AnyRequest
from difflogic.config.request import SweepRequest, TrainRequest, options
from difflogic.errors import UsageError
from difflogic.serve.errors import ApiError, one_sentence
from difflogic.serve.store.jobs import JobRequest

R = TypeVar("R", bound=AnyRequest)
Submitted = tuple[Any, Mapping[str, UploadFile]]
"""Submitted job as JSON data, with a mapping from form fields to uploaded files."""

JSON = "application/json"
FORM = "multipart/form-data"
FILES = (*(option.name for option in options(TrainRequest) if option.is_file), "start_picture", "data", "labels")
"""Names of form fields for files: two images, a rule, training data (samples, a recording or a table), and the labels
of IDX images."""


def media_type(headers: Headers) -> str:
    """Return the media type stated in the headers of a request, in lower case."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


async def read(request: Request) -> Any:
    """Return the data of a JSON body. Raises ApiError for another media type or invalid JSON."""
    # Browsers let other sites send text/plain without a CORS preflight, so JSON as text/plain is refused.
    if media_type(request.headers) != JSON:
        raise ApiError(415, "unsupported_media_type", f"The body must be {JSON} or {FORM}.")
    return parsed(await request.body())


@asynccontextmanager
async def submission(request: Request) -> AsyncIterator[Submitted]:
    """Yield the job in a JSON body or a form, with the form's files, which are open in the context. Raises ApiError."""
    if media_type(request.headers) != FORM:
        yield await read(request), {}
        return
    async with request.form(max_files=len(FILES) + 1, max_fields=len(FILES) + 2, max_part_size=1 << 20) as form:
        yield await _read_form(form)


async def _read_form(form: FormData) -> Submitted:
    unknown = sorted(set(form) - {"job", *FILES})
    if unknown:
        raise ApiError(422, "invalid_request", f"Unknown field {unknown[0][:80]!r}: expected job, {', '.join(FILES)}.")
    uploads = {}
    for name in FILES:
        # A repeated field is refused.
        for upload in form.getlist(name):
            if not isinstance(upload, UploadFile) or name in uploads:
                raise ApiError(422, "invalid_request", f"Expected exactly one file for the field {name}.")
            uploads[name] = upload
    parts = form.getlist("job")
    if len(parts) != 1:
        raise ApiError(422, "invalid_request", "Expected exactly one form field `job`, which contains JSON.")
    part = parts[0]
    text = await part.read() if isinstance(part, UploadFile) else part.encode("utf-8", "surrogatepass")
    return parsed(text), uploads


@contextmanager
def on_disk(uploads: Mapping[str, UploadFile]) -> Iterator[dict[str, Path]]:
    """Write uploaded files to a temporary folder, and yield their paths by form field."""
    if not uploads:
        yield {}
        return
    with TemporaryDirectory(prefix="difflogic-upload-") as folder:
        # Names come from FILES, never from a client.
        paths = {name: Path(folder) / name for name in uploads}
        for name, upload in uploads.items():
            upload.file.seek(0)
            paths[name].write_bytes(upload.file.read())
        yield paths


def parsed(body: bytes) -> Any:
    """Return the data of a JSON body. Raises ApiError if it is invalid or too deep, or has NaN or surrogates."""
    try:
        data = json.loads(body)
        # Infinity, NaN and a lone surrogate pass `loads`, and would fail much later, when the job is written.
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:  # UnicodeError is a ValueError
        raise ApiError(400, "not_json", "The body is not valid JSON.") from error
    return data


async def read_request(part: type[R], request: Request) -> R:
    """Return the body as a request of type `part`, or the default request if there is no body. Raises ApiError."""
    has_body = "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"
    return request_of(part, await read(request) if has_body else {})


def request_of(part: type[R], data: Any) -> R:
    """Return the request of type `part` for JSON data. Raises ApiError."""
    if not isinstance(data, dict):
        raise ApiError(422, "invalid_request", "The request must be a JSON object.")
    try:
        return part.from_dict(data)
    except UsageError as error:
        raise ApiError(422, "invalid_request", one_sentence(str(error))) from error


# OpenAPI schemas ----------------------------------------------------------------------------------------------------

NO_LIMITS = Limits("anything", lambda _: True)
_TYPES: dict[Any, str] = {bool: "boolean", int: "integer", float: "number", object: "object", Table: "object"}


def schema_of(part: type) -> dict[str, Any]:
    """Return the JSON Schema of `part`, a request class or a class for a part of a request."""
    properties, required = {}, []
    for option in options(part):
        if option.is_file or option.is_local:
            continue
        about: dict[str, Any] = {"description": option.words}
        if issubclass(kind := get_origin(option.kind) or option.kind, SweepRequest):
            schema = schema_of(kind)
        else:
            schema = {"type": _TYPES.get(kind, "array" if kind is tuple else "object" if kind is Mapping else "string")}
            schema |= (option.sent or option.limits or NO_LIMITS).schema
        if option.default is None:
            schema = {"anyOf": [schema, {"type": "null"}]}
        if option.default is MISSING:
            required.append(option.name)
        else:
            about["default"] = plain(option.default)
        properties[option.name] = schema | about
    return {"type": "object", "description": (part.__doc__ or "").partition("\n")[0], "properties": properties,
            "required": required, "additionalProperties": False}  # fmt: skip


def job_body() -> dict[str, Any]:
    """Return FastAPI's `openapi_extra` for a route that accepts a job as JSON, or as a form with files."""
    # FastAPI describes either JSON or a form. This route takes both.
    job = schema_of(JobRequest)
    files = {name: {"type": "string", "format": "binary"} for name in FILES}
    form = {"type": "object", "properties": {"job": job, **files}, "required": ["job"], "additionalProperties": False}
    content = {
        "application/json": {"schema": job},
        "multipart/form-data": {"schema": form, "encoding": {"job": {"contentType": "application/json"}}},
    }
    return {"requestBody": {"required": True, "content": content}}


def action_body(part: type) -> dict[str, Any]:
    """Return FastAPI's `openapi_extra` for a route with an optional JSON body of type `part`."""
    return {"requestBody": {"required": False, "content": {"application/json": {"schema": schema_of(part)}}}}
