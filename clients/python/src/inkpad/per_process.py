"""Values of one process, such as sockets and threads, which a forked worker must not take over."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerProcess(Generic[T]):
    """Creates one value in each process.

    A fork copies a client with its sockets, but not the threads. Two processes that use one socket
    read the responses of each other, and a queue whose threads are gone is never worked off. The
    copied value stays where it is: its locks may be held by a thread that only the parent has.
    """

    def __init__(self, create: Callable[[], T]) -> None:
        self._create = create
        self._values: dict[int, T] = {}

    def get(self) -> T:
        # Asked each time, because servers such as uWSGI fork without calling Python's own hooks.
        process_id = os.getpid()
        value = self._values.get(process_id)
        return self._values.setdefault(process_id, self._create()) if value is None else value
