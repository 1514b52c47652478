"""Errors for refused requests, with an HTTP status, a code for programs and a message for people."""

from collections.abc import Mapping, Sequence
from typing import Any


class ApiError(Exception):
    """Error for a refused request, with an HTTP status, a code for programs and a message for people."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, dict(headers or {})

    @property
    def body(self) -> dict[str, Any]:
        return {"error": {"code": self.code, "message": self.message}}


REFUSALS = {
    400: ("bad_request", "The request cannot be read."),
    404: ("not_found", "Nothing was found at this address."),
    405: ("method_not_allowed", "This address does not support this method."),
    413: ("too_large", "The request is too large."),
    416: ("range_not_satisfiable", "The file is shorter than the requested range."),
    415: ("unsupported_media_type", "The request was refused."),
}
"""Mapping from the HTTP status of a framework error to its code and message."""


def invalid(errors: Sequence[Any]) -> ApiError:
    """Return the error for a request that violates the OpenAPI document, with the first of pydantic's `errors`."""
    first = errors[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path", "header"))
    words = str(first["msg"]).rstrip(".")
    return ApiError(422, "invalid_request", f"{where or 'The request'}: {words[:1].lower()}{words[1:]}.")


def one_sentence(text: str) -> str:
    """Return `text` without line breaks, shortened to MOST characters since error messages may quote long requests."""
    words = " ".join(text.split())
    return words if len(words) <= MOST else f"{words[: MOST - 1]}…"


MOST = 600
