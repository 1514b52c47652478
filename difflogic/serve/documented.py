"""The body of a submission, which the application reads by itself, told to the OpenAPI document."""

from __future__ import annotations

from typing import Any

from difflogic.serve.bodies import PICTURES
from difflogic.serve.schemas import JobRequest


def job_body() -> dict[str, Any]:
    """`openapi_extra` of an address that takes a job as JSON, or as a form with pictures."""
    job = JobRequest.model_json_schema()
    pictures = {name: {"type": "string", "format": "binary"} for name in PICTURES}
    form = {
        "type": "object",
        "properties": {"job": job, **pictures},
        "required": ["job"],
        "additionalProperties": False,
    }
    content = {
        "application/json": {"schema": job},
        "multipart/form-data": {"schema": form, "encoding": {"job": {"contentType": "application/json"}}},
    }
    return {"requestBody": {"required": True, "content": content}}
