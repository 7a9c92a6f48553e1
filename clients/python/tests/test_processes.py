"""A client that was made before a fork, as under gunicorn --preload, Celery and multiprocessing."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import threading
import unittest
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import patch

from inkpad import AsyncInkpad, Inkpad, NoResponseError

CHILDREN = 4
CALLS = 25
"""Of each child, at the same time as the others."""


OPTIONS: dict[str, Any] = {"retries": 0, "timeout_seconds": 10}
"""A response that somebody else has read fails soon."""


class EchoServer(ThreadingHTTPServer):
    daemon_threads = True
    ports: list[int]
    """Of each request: the connection that it came by."""


class Echo(BaseHTTPRequestHandler):
    """Responds with the id that was asked for."""

    server: EchoServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def handle_any(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.ports.append(self.client_address[1])
        data = json.dumps({"id": int(self.path.rpartition("/")[2])}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        with suppress(BrokenPipeError):
            self.wfile.write(data)

    do_GET = do_PATCH = handle_any

    def log_message(self, format: str, *args: Any) -> None:
        pass


def read_cards(client: Inkpad, first: int) -> list[int]:
    ids = []
    for id in range(first, first + CALLS):
        ids.append(client.get_card(account_id=1, id=id)["id"])
        ids.append(client.update_card(account_id=1, id=-id, body={"card": {}})["id"])
    return ids


def expected_ids(first: int) -> list[int]:
    return [one for id in range(first, first + CALLS) for one in (id, -id)]


async def read_cards_with_asyncio(client: AsyncInkpad, first: int) -> list[int]:
    ids = range(first, first + CALLS)
    cards = await asyncio.gather(*(client.get_card(account_id=1, id=id) for id in ids))
    return [card["id"] for card in cards]


def fork(work: Callable[[], Any]) -> Callable[[], Any]:
    """Starts a child that does the work. Returns what waits for its result."""
    output, input = os.pipe()
    with warnings.catch_warnings():
        # The server of the test has threads, of which the child uses none.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        # Ends a child that waits for a lock or thread of the parent.
        signal.alarm(60)
        try:
            os.write(input, json.dumps(work()).encode())
        except BaseException as error:
            os.write(input, json.dumps(repr(error)).encode())
        finally:
            os._exit(0)
    os.close(input)

    def wait() -> Any:
        with os.fdopen(output, "rb") as file:
            text = file.read()
        os.waitpid(child, 0)
        return json.loads(text) if text else "the child has ended"

    return wait


@unittest.skipUnless(hasattr(os, "fork"), "Windows has no fork")
class ForkTest(unittest.TestCase):
    def setUp(self) -> None:
        self.server = EchoServer(("127.0.0.1", 0), Echo)
        self.server.ports = []
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def client(self) -> Inkpad:
        client = Inkpad(base_url=self.url, token="ink_token", **OPTIONS)
        self.addCleanup(client.close)
        return client

    def assert_children_read_their_own(self, read: Callable[[int], list[int]]) -> None:
        starts = [1000 * (number + 1) for number in range(CHILDREN)]
        waits = [fork(partial(read, start)) for start in starts]
        for start, wait in zip(starts, waits, strict=True):
            self.assertEqual(wait(), expected_ids(start))

    def test_reads_only_its_own_responses_in_each_child(self) -> None:
        client = self.client()
        self.assertEqual(read_cards(client, 1), expected_ids(1))
        self.assert_children_read_their_own(lambda start: read_cards(client, start))
        self.assertEqual(read_cards(client, 1), expected_ids(1))
        # One of the parent, which it goes on using, and one of each child.
        self.assertEqual(len(set(self.server.ports)), 1 + CHILDREN)

    def test_reads_only_its_own_while_the_parent_goes_on(self) -> None:
        client = self.client()
        ended = threading.Event()
        wrong: list[Any] = []

        def go_on() -> None:
            while not ended.is_set():
                if read_cards(client, 1) != expected_ids(1):
                    wrong.append("a response of somebody else")

        threads = [threading.Thread(target=go_on) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            # Whatever lock a thread of the parent holds at that moment.
            self.assert_children_read_their_own(lambda start: read_cards(client, start))
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])

    def test_serves_a_client_that_was_never_used_before(self) -> None:
        client = self.client()
        self.assert_children_read_their_own(lambda start: read_cards(client, start))

    def test_serves_the_threads_of_a_child(self) -> None:
        client = self.client()
        read_cards(client, 1)

        def read(first: int) -> list[list[int]]:
            with ThreadPoolExecutor(4) as threads:
                return list(threads.map(lambda n: read_cards(client, first + 100 * n), range(4)))

        wait = fork(lambda: read(1000))
        self.assertEqual(read(5000), [expected_ids(5000 + 100 * n) for n in range(4)])
        self.assertEqual(wait(), [expected_ids(1000 + 100 * n) for n in range(4)])

    def test_serves_the_children_of_a_child(self) -> None:
        client = self.client()
        read_cards(client, 1)

        def read() -> list[list[int]]:
            wait = fork(lambda: read_cards(client, 2000))
            return [read_cards(client, 1000), wait()]

        self.assertEqual(fork(read)(), [expected_ids(1000), expected_ids(2000)])
        self.assertEqual(len(set(self.server.ports)), 3)

    def test_serves_the_workers_of_multiprocessing(self) -> None:
        client = self.client()
        read_cards(client, 1)
        method = client.get_card
        results = multiprocessing.get_context("fork").SimpleQueue()

        def work(start: int) -> None:
            signal.alarm(60)
            ids = [method(account_id=1, id=id)["id"] for id in range(start, start + CALLS)]
            results.put((start, ids))

        context = multiprocessing.get_context("fork")
        starts = [1000 * (number + 1) for number in range(CHILDREN)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            workers = [context.Process(target=work, args=(start,)) for start in starts]
            for worker in workers:
                worker.start()
        read = dict(results.get() for _ in workers)
        for worker in workers:
            worker.join()
        self.assertEqual(read, {start: list(range(start, start + CALLS)) for start in starts})

    def test_closes_the_connections_of_the_child_alone(self) -> None:
        client = self.client()
        read_cards(client, 1)

        def read_and_close() -> list[int]:
            with client:
                return read_cards(client, 1000)

        self.assertEqual(fork(read_and_close)(), expected_ids(1000))
        read_cards(client, 1)
        self.assertEqual(len(set(self.server.ports)), 2)

    def test_needs_no_hook_of_python_at_the_fork(self) -> None:
        """As servers written in C fork, which is seen by the id of the process alone."""
        client = self.client()
        read_cards(client, 1)
        with patch("inkpad.per_process.os.getpid", lambda: -1):
            self.assertEqual(read_cards(client, 1000), expected_ids(1000))
        self.assertEqual(len(set(self.server.ports)), 2)

    def test_reads_only_its_own_behind_a_proxy(self) -> None:
        # A proxy of plain requests gets them as the service does, with the whole address.
        client = Inkpad(base_url="http://cards.example", token="t", proxy=self.url, **OPTIONS)
        self.addCleanup(client.close)
        self.assertEqual(read_cards(client, 1), expected_ids(1))
        self.assert_children_read_their_own(lambda start: read_cards(client, start))
        self.assertEqual(len(set(self.server.ports)), 1 + CHILDREN)

    def test_serves_asyncio_in_each_child(self) -> None:
        client = AsyncInkpad(base_url=self.url, token="ink_token", max_connections=3, **OPTIONS)
        expected = list(range(1, 1 + CALLS))
        self.assertEqual(asyncio.run(read_cards_with_asyncio(client, 1)), expected)
        ports = set(self.server.ports)
        starts = [1000 * (number + 1) for number in range(CHILDREN)]

        def read(first: int) -> list[int]:
            return asyncio.run(read_cards_with_asyncio(client, first))

        waits = [fork(partial(read, start)) for start in starts]
        for start, wait in zip(starts, waits, strict=True):
            self.assertEqual(wait(), list(range(start, start + CALLS)))
        asyncio.run(client.close())
        self.assertEqual(len(ports & set(self.server.ports[CALLS:])), 0)

    def test_is_usable_in_a_child_after_the_parent_has_closed_it(self) -> None:
        client = AsyncInkpad(base_url=self.url, token="ink_token", **OPTIONS)
        asyncio.run(read_cards_with_asyncio(client, 1))
        asyncio.run(client.close())
        wait = fork(lambda: asyncio.run(read_cards_with_asyncio(client, 1000)))
        self.assertEqual(wait(), list(range(1000, 1000 + CALLS)))

    def test_fails_in_the_child_as_in_the_parent(self) -> None:
        client = self.client()
        read_cards(client, 1)
        self.server.shutdown()
        self.server.server_close()

        def read() -> str:
            try:
                client.get_card(account_id=1, id=1)
            except NoResponseError as error:
                return error.code
            return "no error"

        # The server's threads end with the connections that are kept open.
        client.close()
        self.assertEqual(fork(read)(), "no_response")


if __name__ == "__main__":
    unittest.main()
