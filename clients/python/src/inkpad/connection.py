"""What both clients share: their options, one attempt of a request, and when to send it again."""

from __future__ import annotations

import json
import platform
import random
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import urllib3

from .error_classes import ERROR_CLASSES
from .errors import InkpadError
from .operations import VERSION
from .per_process import PerProcess
from .proxies import Proxy, find_proxy

T = TypeVar("T")

_USER_AGENT = f"inkpad-python/{VERSION} python/{platform.python_version()}"
_RETRIED = {408, 429, 500, 502, 503, 504}
_RETRIED_CODES = {"no_response", "timed_out", "idempotency_in_progress"}


class Page(list[T]):
    """One page of a list."""

    next: dict[str, str] | None = None
    """What leads to the next page, if there is one."""


class ObjectPage(dict[str, Any]):
    """One page of a list within an object."""

    next: dict[str, str] | None = None
    """What leads to the next page, if there is one."""


@dataclass(frozen=True)
class ApiResponse(Generic[T]):
    """A successful response with its headers."""

    data: T
    """What the method returns by itself."""
    status: int
    headers: Mapping[str, str]
    """By name in any case: rate limit, Idempotent-Replayed, X-Unknown-Parameters, X-Dry-Run."""
    request_id: str | None
    """To be quoted to whoever runs the service."""


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    headers: urllib3.HTTPHeaderDict
    body: bytes | None
    accept: str
    """The media types of the operation's result."""


class Connection:
    """What both clients are made of: their options, and one attempt of a request."""

    def __init__(
        self,
        *,
        base_url: str,
        token: str,
        account_id: int | None = None,
        headers: Mapping[str, str] | None = None,
        idempotent: bool = True,
        retries: int = 2,
        timeout_seconds: float = 60,
        max_wait_seconds: float = 60,
        max_connections: int = 10,
        proxy: str | None = None,
    ) -> None:
        """The options of both clients.

        base_url: where the service is, without `/api/v1`
        account_id: the store of every call without an `account_id`
        headers: sent with every request. `{"Prefer": "handling=strict"}` finds misspelt fields in
            tests.
        idempotent: gives every write an Idempotency-Key, so that it can be sent again safely
        retries: how often a request is sent again, at most
        timeout_seconds: how long to wait for a connection, and for the service to say something. The
            service responds within thirty seconds, or not at all.
        max_wait_seconds: a Retry-After longer than this is not waited for
        max_connections: how many connections are kept open, in each process
        proxy: the address of an HTTP proxy, with its user and password if it has them; an empty text
            for none. By default what HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY say.
        """
        self._base_url = _check_base_url(base_url)
        # One that was read from a file ends with the end of its line.
        self._token = token.strip()
        if not self._token:
            raise ValueError("token is empty")
        # What http.client says of such a header quotes the token, and so would end in logs.
        if not re.fullmatch("[!-~]+", self._token):
            raise ValueError("token has characters that no token has")
        self._account_id = account_id
        self._headers = dict(headers or {})
        self._idempotent = idempotent
        self._retries = retries
        self._max_wait_seconds = max_wait_seconds
        self._max_connections = max_connections
        found_proxy = find_proxy(self._base_url, proxy)
        self._pool = PerProcess(
            lambda: _create_pool(
                found_proxy,
                maxsize=max_connections,
                retries=False,
                timeout=urllib3.Timeout(timeout_seconds, timeout_seconds),
            )
        )

    def _prepare(
        self,
        method: str,
        path: str,
        *,
        ids: dict[str, int | str | None],
        query: dict[str, Any],
        body: Any = None,
        media_type: str | None = None,
        accept: str = "application/json",
        idempotency_key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Request:
        sent = urllib3.HTTPHeaderDict(
            {
                "Accept": accept,
                "Authorization": f"Bearer {self._token}",
                "User-Agent": _USER_AGENT,
            }
        )
        if isinstance(body, bytes):
            sent["Content-Type"] = media_type or _detect_picture_type(body)
        elif body is not None:
            sent["Content-Type"] = "application/json"
            body = json.dumps(body).encode()
        for name, value in [*self._headers.items(), *(headers or {}).items()]:
            sent[name] = value
        if idempotency_key is not None:
            sent["Idempotency-Key"] = idempotency_key
        if self._idempotent and method != "GET" and "Idempotency-Key" not in sent:
            sent["Idempotency-Key"] = str(uuid.uuid4())
        if ids.get("account_id", 0) is None:
            ids = {**ids, "account_id": self._account_id}
        url = self._base_url + _fill_in(path, ids) + _query_string(query)
        return Request(method, url, sent, body, accept)

    def _send(self, request: Request) -> ApiResponse[Any]:
        """Sends it once.

        Raises InkpadError if it is refused, or no response comes.
        """
        try:
            response = self._pool.get().request(
                request.method,
                request.url,
                body=request.body,
                headers=request.headers,
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            # urllib3 counts a refused connection among the time-outs.
            refused = isinstance(error, urllib3.exceptions.NewConnectionError)
            if isinstance(error, urllib3.exceptions.TimeoutError) and not refused:
                message, code = "The service took too long", "timed_out"
            else:
                message, code = f"No response from the service: {error}", "no_response"
            raise ERROR_CLASSES[code](message, code=code) from error
        return _read_response(request, response)

    def _start_retries(self, request: Request) -> Retries:
        # What may have been done already is sent again only where that changes nothing.
        safe = request.method == "GET" or "Idempotency-Key" in request.headers
        return Retries(self._retries if safe else 0, self._max_wait_seconds)


class Retries:
    """Decides whether a request is sent again, and when."""

    def __init__(self, left: int, max_wait_seconds: float) -> None:
        self._left = left
        self._max_wait_seconds = max_wait_seconds
        self._attempt = 0

    def wait_after(self, error: InkpadError) -> float | None:
        """Seconds until the next attempt; None if there is none.

        They are spread so that clients that were refused together do not come back together.
        """
        if self._left <= 0 or (error.retry_after or 0) > self._max_wait_seconds:
            return None
        if error.status not in _RETRIED and error.code not in _RETRIED_CODES:
            return None
        self._left -= 1
        self._attempt += 1
        if error.retry_after is not None:
            return error.retry_after * random.uniform(1, 1.25)
        return float(2 ** (self._attempt - 1)) * random.uniform(0.5, 1)


_recorded: ContextVar[list[ApiResponse[Any]] | None] = ContextVar("inkpad_recorded", default=None)


def record(response: ApiResponse[Any]) -> Any:
    """Keeps the response for `with_response`. Returns its data."""
    responses = _recorded.get()
    if responses is not None:
        responses.append(response)
    return response.data


@contextmanager
def recording() -> Iterator[list[ApiResponse[Any]]]:
    """The responses to the calls of this thread or task."""
    responses: list[ApiResponse[Any]] = []
    token = _recorded.set(responses)
    try:
        yield responses
    finally:
        _recorded.reset(token)


def last_response(responses: list[ApiResponse[Any]]) -> ApiResponse[Any]:
    if not responses:
        raise TypeError("with_response takes a method of the client, such as inkpad.get_card")
    return responses[-1]


def start_pages(method: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the first page."""
    if getattr(method, "__name__", None) != "list_customers":
        return arguments
    # By id, so that nobody is missing or comes twice because others are created meanwhile.
    return {"cursor": "", **arguments}


def split_page(page: Any) -> tuple[list[Any], dict[str, Any] | None]:
    """The elements of a page, and the arguments that lead to the next one."""
    return page["customers"] if isinstance(page, dict) else page, page.next


def _create_pool(proxy: Proxy | None, **options: Any) -> urllib3.PoolManager:
    if proxy is None:
        return urllib3.PoolManager(**options)
    # These headers are for the proxy alone. It never sees those of a request over https.
    return urllib3.ProxyManager(proxy.url, proxy_headers=proxy.headers, **options)


def _read_response(request: Request, response: urllib3.BaseHTTPResponse) -> ApiResponse[Any]:
    media_type = response.headers.get("content-type", "").partition(";")[0].strip()
    # A proxy's page is no result either.
    is_text = request.accept != "application/json" and media_type in request.accept.split(", ")
    body = response.data.decode("utf-8-sig") if is_text else _parse_json(response.data)
    request_id = response.headers.get("x-request-id")
    if 200 <= response.status < 300 and (body is not None or response.status == 204):
        data = _create_page(body, response.headers.get("link"))
        return ApiResponse(data, response.status, response.headers, request_id)
    raise _create_error(response, body)


def _create_error(response: urllib3.BaseHTTPResponse, body: Any) -> InkpadError:
    fields: dict[str, Any] = body if isinstance(body, dict) else {}
    message = fields.get("error")
    code = fields.get("code")
    if not isinstance(code, str):
        code = "unknown"
    return ERROR_CLASSES.get(code, InkpadError)(
        message
        if isinstance(message, str)
        else f"Not a response of Inkpad (status {response.status})",
        status=response.status,
        code=code,
        errors=fields.get("errors"),
        error_codes=fields.get("error_codes"),
        existing=fields.get("existing"),
        resume_after=fields.get("resume_after"),
        resolution=fields.get("resolution"),
        documentation_url=fields.get("documentation_url"),
        request_id=fields.get("request_id") or response.headers.get("x-request-id"),
        retry_after=_parse_retry_after(response.headers.get("retry-after")),
        headers=response.headers,
    )


def _check_base_url(base_url: str) -> str:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("base_url must be an http or https URL")
    if parts.username or parts.query or parts.fragment:
        raise ValueError("base_url must have no user, query or fragment")
    plain = base_url.rstrip("/")
    if plain.endswith("/api/v1"):
        raise ValueError("base_url must end before /api/v1")
    return plain


def _fill_in(path: str, ids: dict[str, int | str | None]) -> str:
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
    parameters = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in query.items()
        if value is not None
    }
    return f"?{urlencode(parameters)}" if parameters else ""


def _detect_picture_type(picture: bytes) -> str:
    if picture.startswith(b"\x89PNG"):
        return "image/png"
    if picture.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if picture[:4] == b"RIFF" and picture[8:12] == b"WEBP":
        return "image/webp"
    return "application/octet-stream"


def _parse_json(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        # Not the service's own response: a proxy's page, for example.
        return None


def _create_page(body: Any, link: str | None) -> Any:
    if not isinstance(body, list | dict):
        return body
    page = Page(body) if isinstance(body, list) else ObjectPage(body)
    # <…?limit=100&cursor=…>; rel="next" (RFC 8288)
    target = re.search(r'<([^>]*)>\s*;[^,]*rel="?next"?', link or "")
    if target:
        query = parse_qs(urlsplit(target.group(1)).query)
        page.next = {name: query[name][0] for name in ("cursor", "after") if name in query}
    return page


def _parse_retry_after(retry_after: str | None) -> float | None:
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
