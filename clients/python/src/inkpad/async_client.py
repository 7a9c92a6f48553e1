"""The client for asyncio: the same operations, to be awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, overload

from . import models
from .async_operations import AsyncOperations
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
from .per_process import PerProcess

P = ParamSpec("P")
T = TypeVar("T")


class AsyncInkpad(Connection, AsyncOperations):
    """One coroutine for each operation of the API, with the options of Inkpad.

    Threads wait for the service, so that the event loop never does: at most `max_connections` at
    once, and other requests wait their turn. A task that is cancelled ends at once; its request may
    still be done.
    """

    @cached_property
    def _threads(self) -> PerProcess[ThreadPoolExecutor]:
        return PerProcess(
            lambda: ThreadPoolExecutor(self._max_connections, thread_name_prefix="inkpad")
        )

    async def close(self) -> None:
        """Closes the connections that are kept open."""
        self._threads.get().shutdown(wait=False, cancel_futures=True)
        self._pool.get().clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def with_response(
        self, method: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> ApiResponse[T]:
        """The result with status and headers: `with_response(inkpad.get_card, id=12)`."""
        with recording() as responses:
            data = await method(*args, **kwargs)
        last = last_response(responses)
        return ApiResponse(data, last.status, last.headers, last.request_id)

    @overload
    def iterate(
        self, method: Callable[P, Awaitable[models.CustomerList]], *args: P.args, **kwargs: P.kwargs
    ) -> AsyncIterator[models.Customer]: ...

    @overload
    def iterate(
        self, method: Callable[P, Awaitable[list[T]]], *args: P.args, **kwargs: P.kwargs
    ) -> AsyncIterator[T]: ...

    async def iterate(
        self, method: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Every element of a list: `async for card in inkpad.iterate(inkpad.list_cards)`."""
        kwargs = start_pages(method, kwargs)
        while True:
            elements, following = split_page(await method(*args, **kwargs))
            for element in elements:
                yield element
            if following is None:
                return
            kwargs = {**kwargs, **following}

    async def _call(self, method: str, path: str, **details: Any) -> Any:
        request = self._prepare(method, path, **details)
        retries = self._start_retries(request)
        loop = asyncio.get_running_loop()
        while True:
            try:
                return record(await loop.run_in_executor(self._threads.get(), self._send, request))
            except InkpadError as error:
                wait = retries.wait_after(error)
                if wait is None:
                    raise
            await asyncio.sleep(wait)
