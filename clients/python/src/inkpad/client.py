"""The client itself: sends and resends requests, and reads the responses."""

from __future__ import annotations

import json
import random
import re
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, overload
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import urllib3

from . import models
from .errors import InkpadError
from .operations import Operations

P = ParamSpec("P")
T = TypeVar("T")

_PASSING = {408, 429, 500, 502, 503, 504}


class Page(list[T]):
    """One page of a list."""

    next: dict[str, str] | None = None
    """What leads to the next page, if there is one."""


class Inkpad(Operations):
    """One method for each operation of the API. May be used by several threads at once.

    base_url: where the service is, without `/api/v1`
    idempotent: gives every write an Idempotency-Key, so that it can be sent again safely
    retries: how often a request is sent again, at most
    timeout_seconds: how long to wait for a connection, and for the service to say something. The
        service responds within thirty seconds, or not at all.
    max_wait_seconds: a Retry-After longer than this is not waited for
    """

    def __init__(
        self,
        *,
        base_url: str,
        token: str,
        idempotent: bool = True,
        retries: int = 2,
        timeout_seconds: float = 60,
        max_wait_seconds: float = 60,
    ) -> None:
        self._base_url = _checked_base_url(base_url)
        # One that was read from a file ends with the end of its line.
        self._token = token.strip()
        if not self._token:
            raise ValueError("token is empty")
        # What http.client says of such a header quotes the token, and so would end in logs.
        if not re.fullmatch("[!-~]+", self._token):
            raise ValueError("token has characters that no token has")
        self._idempotent = idempotent
        self._retries = retries
        self._max_wait_seconds = max_wait_seconds
        self._pool = urllib3.PoolManager(
            maxsize=10, retries=False, timeout=urllib3.Timeout(timeout_seconds, timeout_seconds)
        )

    def close(self) -> None:
        """Closes the connections that are kept open."""
        self._pool.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @overload
    def iterate(
        self, method: Callable[P, models.CustomerList], *args: P.args, **kwargs: P.kwargs
    ) -> Iterator[models.Customer]: ...

    @overload
    def iterate(
        self, method: Callable[P, list[T]], *args: P.args, **kwargs: P.kwargs
    ) -> Iterator[T]: ...

    def iterate(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Iterator[Any]:
        """Every element of a list, page after page: `iterate(inkpad.list_cards, account_id=1)`."""
        while True:
            page = method(*args, **kwargs)
            if isinstance(page, dict):
                yield from page["customers"]
                at = page["pagination"]
                following = {"page": at["page"] + 1} if at["page"] < at["pages"] else None
            else:
                yield from page
                following = page.next
            if following is None:
                return
            kwargs = {**kwargs, **following}

    def _call(
        self,
        method: str,
        path: str,
        *,
        ids: dict[str, int | str],
        query: dict[str, Any],
        body: Any = None,
        idempotency_key: str | None = None,
    ) -> Any:
        is_write = method != "GET"
        if idempotency_key is None and self._idempotent and is_write:
            idempotency_key = str(uuid.uuid4())
        headers = {"Accept": "application/json", "Authorization": f"Bearer {self._token}"}
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        if isinstance(body, bytes):
            headers["Content-Type"] = _picture_type(body)
        elif body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(body).encode()
        url = self._base_url + _filled_in(path, ids) + _query_string(query)
        # What may have been done already is sent again only where that changes nothing.
        left = self._retries if idempotency_key is not None or not is_write else 0
        attempt = 0
        while True:
            try:
                return self._attempt(method, url, headers, body)
            except InkpadError as error:
                too_long = (error.retry_after or 0) > self._max_wait_seconds
                if left <= 0 or too_long or not _is_passing(error):
                    raise
                wait = _wait_before(attempt, error)
            time.sleep(wait)
            attempt += 1
            left -= 1

    def _attempt(self, method: str, url: str, headers: dict[str, str], body: bytes | None) -> Any:
        try:
            response = self._pool.request(method, url, body=body, headers=headers, redirect=False)
        except urllib3.exceptions.HTTPError as error:
            # urllib3 counts a refused connection among the time-outs.
            refused = isinstance(error, urllib3.exceptions.NewConnectionError)
            if isinstance(error, urllib3.exceptions.TimeoutError) and not refused:
                raise InkpadError("The service took too long", code="timed_out") from error
            message = f"No response from the service: {error}"
            raise InkpadError(message, code="no_response") from error
        said = _json_of(response.data)
        if 200 <= response.status < 300 and (said is not None or response.status == 204):
            return _page(said, response.headers.get("link")) if isinstance(said, list) else said
        raise InkpadError.of_answer(
            response.status,
            said,
            response.headers.get("x-request-id"),
            _seconds_of(response.headers.get("retry-after")),
        )


def _checked_base_url(base_url: str) -> str:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("base_url must be an http or https URL")
    if parts.username or parts.query or parts.fragment:
        raise ValueError("base_url must have no user, query or fragment")
    plain = base_url.rstrip("/")
    if plain.endswith("/api/v1"):
        raise ValueError("base_url must end before /api/v1")
    return plain


def _filled_in(path: str, ids: dict[str, int | str]) -> str:
    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        value = ids.get(name)
        text = "" if value is None or isinstance(value, bool) else str(value)
        # A path with .. in it would lead to another operation.
        if text.strip() in ("", ".", ".."):
            raise ValueError(f"{name} is missing: {value!r} is no id")
        return quote(text, safe="")

    return re.sub(r"\{(\w+)\}", fill, path)


def _query_string(query: dict[str, Any]) -> str:
    given = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in query.items()
        if value is not None
    }
    return f"?{urlencode(given)}" if given else ""


def _picture_type(picture: bytes) -> str:
    if picture.startswith(b"\x89PNG"):
        return "image/png"
    if picture.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if picture[:4] == b"RIFF" and picture[8:12] == b"WEBP":
        return "image/webp"
    return "application/octet-stream"


def _json_of(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        # Not the service's own response: a proxy's page, for example.
        return None


def _page(elements: list[Any], link: str | None) -> Page[Any]:
    page = Page(elements)
    # <…?limit=100&cursor=…>; rel="next" (RFC 8288)
    target = re.search(r'<([^>]*)>\s*;[^,]*rel="?next"?', link or "")
    if target:
        query = parse_qs(urlsplit(target.group(1)).query)
        page.next = {name: query[name][0] for name in ("cursor", "after") if name in query}
    return page


def _is_passing(error: InkpadError) -> bool:
    if error.code in ("no_response", "timed_out", "idempotency_in_progress"):
        return True
    return error.status in _PASSING


def _wait_before(attempt: int, error: InkpadError) -> float:
    """Seconds, spread so that clients that were refused together do not come back together."""
    if error.retry_after is not None:
        return error.retry_after * random.uniform(1, 1.25)
    return float(2**attempt) * random.uniform(0.5, 1)


def _seconds_of(retry_after: str | None) -> float | None:
    if retry_after is None:
        return None
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        at = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=timezone.utc)
    return max(0.0, (at - datetime.now(timezone.utc)).total_seconds())
