"""What goes wrong with a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class InkpadError(Exception):
    """A request that was refused, or could not be done.

    Each code has a subclass; one that is not known yet has none.
    """

    status: int
    """The HTTP status; 0 when no response came."""
    code: str
    """For programs. `no_response` and `timed_out` when none came, `unknown` when it was not the
    service's own."""
    errors: dict[str, list[str]]
    """On 422: messages by field; `base` is for the whole record."""
    error_codes: dict[str, list[str]]
    """On 422: the codes of the messages in `errors`, by field and in the same order. For
    programs."""
    existing: dict[str, Any] | None
    """With the code `taken`: `type` and `id` of the record that has the value."""
    resume_after: str | None
    """With the code `cursor_ahead`: the id of the event to continue after; None: continue from the
    beginning."""
    resolution: str | None
    """How to fix it, for people."""
    documentation_url: str | None
    request_id: str | None
    """To be quoted to whoever runs the service."""
    retry_after: float | None
    """Seconds."""
    headers: Mapping[str, str]
    """Of the response, by name in any case; empty when none came."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str = "unknown",
        errors: dict[str, list[str]] | None = None,
        error_codes: dict[str, list[str]] | None = None,
        existing: dict[str, Any] | None = None,
        resume_after: str | None = None,
        resolution: str | None = None,
        documentation_url: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.errors = errors or {}
        self.error_codes = error_codes or {}
        self.existing = existing
        self.resume_after = resume_after
        self.resolution = resolution
        self.documentation_url = documentation_url
        self.request_id = request_id
        self.retry_after = retry_after
        self.headers = {} if headers is None else headers
