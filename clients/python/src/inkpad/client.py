"""The client: one method for each operation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, overload

from . import models
from .connection import (
    ApiResponse,
    Connection,
    last_response,
    record,
    recording,
    split_page,
    start_pages,
)
from .errors import InkpadError
from .operations import Operations

P = ParamSpec("P")
T = TypeVar("T")


class Inkpad(Connection, Operations):
    """One method for each operation of the API. May be used by several threads and processes at once."""

    def close(self) -> None:
        """Closes the connections that are kept open."""
        self._pool.get().clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def with_response(
        self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> ApiResponse[T]:
        """The result with status and headers: `with_response(inkpad.get_card, id=12)`."""
        with recording() as responses:
            data = method(*args, **kwargs)
        last = last_response(responses)
        return ApiResponse(data, last.status, last.headers, last.request_id)

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
        kwargs = start_pages(method, kwargs)
        while True:
            elements, following = split_page(method(*args, **kwargs))
            yield from elements
            if following is None:
                return
            kwargs = {**kwargs, **following}

    def _call(self, method: str, path: str, **details: Any) -> Any:
        request = self._prepare(method, path, **details)
        retries = self._start_retries(request)
        while True:
            try:
                return record(self._send(request))
            except InkpadError as error:
                wait = retries.wait_after(error)
                if wait is None:
                    raise
            time.sleep(wait)
