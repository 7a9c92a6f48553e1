"""The client against a server that responds with what each test gives it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import unittest
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import patch

from inkpad import (
    AsyncInkpad,
    Inkpad,
    InkpadError,
    InsufficientStampsError,
    TimedOutError,
)

BUSY = {"status": 503, "headers": {"retry-after": "0"}, "json": {"code": "unavailable"}}
IDS: dict[str, Any] = {"account_id": 1, "id": 7}


class FakeServer(ThreadingHTTPServer):
    daemon_threads = True
    responses: list[dict[str, Any]]
    requests: list[dict[str, Any]]


class Handler(BaseHTTPRequestHandler):
    server: FakeServer
    protocol_version = "HTTP/1.1"

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = {"method": self.command, "path": self.path, "headers": headers, "body": body}
        self.server.requests.append(request)
        response: dict[str, Any] = {"status": 500}
        if self.server.responses:
            response = self.server.responses.pop(0)
        if response.get("drop"):
            self.close_connection = True
            return
        if "delay" in response:
            time.sleep(response["delay"])
        if "together" in response:
            response["together"].wait(timeout=10)
        data = json.dumps(response["json"]).encode() if "json" in response else response.get("data", b"")
        self.send_response(response.get("status", 200))
        for name, value in response.get("headers", {}).items():
            self.send_header(name, value)
        if response.get("status") != 204:
            self.send_header("content-length", str(len(data)))
        self.end_headers()
        with suppress(BrokenPipeError):
            self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any

    def log_message(self, format: str, *args: Any) -> None:
        pass


class ClientTest(unittest.TestCase):
    def setUp(self) -> None:
        self.server = FakeServer(("127.0.0.1", 0), Handler)
        self.server.responses = []
        self.server.requests = []
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.clients: list[Inkpad] = []

    def tearDown(self) -> None:
        for client in self.clients:
            client.close()
        self.server.shutdown()
        self.server.server_close()

    def client(self, path: str = "", **options: Any) -> Inkpad:
        client = Inkpad(base_url=self.url + path, token="ink_token", **options)
        self.clients.append(client)
        return client

    def respond_with(self, *responses: dict[str, Any]) -> None:
        self.server.responses[:] = responses

    @property
    def requests(self) -> list[dict[str, Any]]:
        return self.server.requests

    def keys(self) -> list[str | None]:
        return [request["headers"].get("idempotency-key") for request in self.requests]

    def test_sends_method_path_query_token_and_body(self) -> None:
        self.respond_with({"json": []}, {"status": 201, "json": {"id": 7}})
        self.client().list_history(account_id=1, from_="2026-03-01T00:00:00Z", limit=5)
        card = self.client().create_card(account_id=1, body={"card": {"name": "Café"}})
        self.assertEqual(card["id"], 7)
        listed, created = self.requests
        self.assertEqual(
            listed["path"], "/api/v1/accounts/1/history?limit=5&from=2026-03-01T00%3A00%3A00Z"
        )
        self.assertEqual(listed["headers"]["authorization"], "Bearer ink_token")
        self.assertNotIn("content-type", listed["headers"])
        self.assertEqual(created["method"], "POST")
        self.assertEqual(created["headers"]["content-type"], "application/json")
        self.assertEqual(json.loads(created["body"]), {"card": {"name": "Café"}})

    def test_keeps_the_path_of_the_base_url(self) -> None:
        self.respond_with({"json": {"id": 7}}, {"json": {"id": 7}})
        for path in ("/loyalty", "/loyalty/"):
            self.client(path).get_card(**IDS)
        self.assertEqual(
            {one["path"] for one in self.requests}, {"/loyalty/api/v1/accounts/1/cards/7"}
        )

    def test_refuses_a_base_url_or_token_that_cannot_be_right(self) -> None:
        for url in ("", "cards.example", "ftp://cards.example", "https://", "https://a@b.example"):
            with self.assertRaises(ValueError, msg=url):
                Inkpad(base_url=url, token="t")
        with self.assertRaisesRegex(ValueError, "must end before /api/v1"):
            Inkpad(base_url="https://cards.example/api/v1/", token="t")
        for token in ("", "\n"):
            with self.assertRaisesRegex(ValueError, "token is empty"):
                Inkpad(base_url="https://cards.example", token=token)
        for token in ("ink_…", "ink_a\nink_b"):
            with self.assertRaisesRegex(ValueError, "^token has characters that no token has$"):
                Inkpad(base_url="https://cards.example", token=token)

    def test_takes_a_token_with_the_end_of_its_line(self) -> None:
        self.respond_with({"json": []})
        with Inkpad(base_url=self.url, token="ink_token\r\n") as client:
            client.list_accounts()
        self.assertEqual(self.requests[0]["headers"]["authorization"], "Bearer ink_token")

    def test_refuses_ids_that_are_missing(self) -> None:
        missing: list[Any] = [None, "", " ", ".", "..", False]
        for id in missing:
            with self.assertRaisesRegex(ValueError, "code is missing"):
                self.client().stamp_by_code(account_id=1, code=id, body={"stamps": 1})
        self.assertEqual(self.requests, [])
        self.respond_with({"json": {}})
        self.client().get_customer_card_by_code(account_id=1, code="a/b?c")
        self.assertEqual(
            self.requests[0]["path"], "/api/v1/accounts/1/customer_cards/by_code/a%2Fb%3Fc"
        )

    def test_sends_a_picture_with_its_media_type(self) -> None:
        self.respond_with(*[{"json": {"id": 7}}] * 3)
        pictures = [b"\x89PNG\r\n\x1a\n1", b"\xff\xd8\xff\xe0", b"RIFF\0\0\0\0WEBPVP8 "]
        for picture in pictures:
            self.client().set_card_strip_image(**IDS, body=picture)
        self.assertEqual([one["body"] for one in self.requests], pictures)
        types = [one["headers"]["content-type"] for one in self.requests]
        self.assertEqual(types, ["image/png", "image/jpeg", "image/webp"])

    def test_raises_what_the_service_said(self) -> None:
        said = {
            "error": "name is required",
            "code": "validation_failed",
            "errors": {"name": ["is required"]},
            "error_codes": {"name": ["required"]},
            "existing": {"type": "customer", "id": 31},
            "resume_after": "evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3",
            "resolution": "Give a name.",
            "documentation_url": "https://cards.example/docs/errors#validation_failed",
        }
        self.respond_with({"status": 422, "headers": {"x-request-id": "r-1"}, "json": said})
        with self.assertRaises(InkpadError) as caught:
            self.client().create_card(account_id=1, body={"card": {"name": ""}})
        error = caught.exception
        self.assertEqual(str(error), "name is required")
        self.assertEqual((error.status, error.code), (422, "validation_failed"))
        self.assertEqual(error.errors, {"name": ["is required"]})
        self.assertEqual(error.error_codes, {"name": ["required"]})
        self.assertEqual(error.existing, {"type": "customer", "id": 31})
        self.assertEqual(error.resume_after, "evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3")
        self.assertEqual(error.resolution, "Give a name.")
        self.assertEqual(error.documentation_url, said["documentation_url"])
        self.assertEqual((error.request_id, error.retry_after), ("r-1", None))

    def test_understands_what_is_not_the_services_own_response(self) -> None:
        for status in (400, 301):
            self.respond_with({"status": status, "headers": {"location": "/"}, "data": b"<h1>no</h1>"})
            with self.assertRaises(InkpadError) as caught:
                self.client().get_card(**IDS)
            self.assertEqual((caught.exception.status, caught.exception.code), (status, "unknown"))
        self.assertEqual(len(self.requests), 2)
        for page in (b"<h1>Sign in</h1>", b""):
            self.respond_with({"data": page}, {"data": page})
            client = self.client()
            for call in (client.get_card, lambda **_: [*client.iterate(client.list_accounts)]):
                with self.assertRaises(InkpadError) as caught:
                    call(**IDS)
                self.assertEqual((caught.exception.status, caught.exception.code), (200, "unknown"))
        self.assertEqual(len(self.requests), 6)

    def test_sends_a_read_again_as_soon_as_retry_after_is_over(self) -> None:
        self.respond_with(BUSY, {**BUSY, "status": 429}, {"json": {"id": 7}})
        self.assertEqual(self.client().get_card(**IDS)["id"], 7)
        self.assertEqual(len(self.requests), 3)

    def test_sends_again_after_every_response_that_says_nothing_was_written(self) -> None:
        for status in (408, 500, 502, 503, 504):
            self.respond_with({**BUSY, "status": status}, {"json": {"id": 7}})
            self.assertEqual(self.client().archive_card(**IDS)["id"], 7)
        self.assertEqual(len(self.requests), 10)

    def test_waits_longer_each_time_and_never_the_same(self) -> None:
        waits: list[float] = []
        with patch("inkpad.client.time.sleep", waits.append):
            for _ in range(20):
                self.respond_with(*[{"status": status} for status in (502, 504, 503)])
                with self.assertRaises(InkpadError):
                    self.client().get_card(**IDS)
            first, second = waits[::2], waits[1::2]
            self.assertTrue(all(0.5 <= wait <= 1 for wait in first), first)
            self.assertTrue(all(1 <= wait <= 2 for wait in second), second)
            self.assertGreater(len(set(first)), 10)
            waits.clear()
            self.respond_with({**BUSY, "headers": {"retry-after": "4"}}, {"json": {"id": 7}})
            self.client().get_card(**IDS)
            self.assertTrue(4 <= waits[0] <= 5, waits)

    def test_gives_up_after_as_many_retries_as_it_was_given(self) -> None:
        self.respond_with(BUSY, BUSY)
        with self.assertRaises(InkpadError) as caught:
            self.client(retries=1).get_card(**IDS)
        self.assertEqual((caught.exception.status, caught.exception.retry_after), (503, 0))
        self.assertEqual(len(self.requests), 2)

    def test_does_not_wait_longer_than_it_may(self) -> None:
        for retry_after in ("61", "Fri, 01 Jan 2100 00:00:00 GMT"):
            self.respond_with({**BUSY, "headers": {"retry-after": retry_after}})
            with self.assertRaises(InkpadError) as caught:
                self.client().get_card(**IDS)
            self.assertGreaterEqual(caught.exception.retry_after or 0, 61)
        self.assertEqual(len(self.requests), 2)

    def test_sends_a_write_again_with_the_same_key(self) -> None:
        in_progress = {**BUSY, "status": 409, "json": {"code": "idempotency_in_progress"}}
        self.respond_with(BUSY, in_progress, {"json": {"id": 7}})
        self.client().archive_card(**IDS)
        first, second, third = self.keys()
        self.assertRegex(first or "", r"^[\da-f-]{36}$")
        self.assertEqual((second, third), (first, first))

    def test_takes_a_key_of_the_caller(self) -> None:
        self.respond_with({"status": 204})
        self.client().delete_reward(**IDS, idempotency_key="mine")
        self.assertEqual(self.keys(), ["mine"])

    def test_sends_a_write_without_a_key_once(self) -> None:
        self.respond_with(BUSY)
        with self.assertRaises(InkpadError):
            self.client(idempotent=False).archive_card(**IDS)
        self.assertEqual(self.keys(), [None])

    def test_sends_again_what_got_no_response(self) -> None:
        self.respond_with({"drop": True}, {"json": {"id": 7}})
        with patch("inkpad.client.time.sleep"):
            self.assertEqual(self.client().get_card(**IDS)["id"], 7)
        self.assertEqual(len(self.requests), 2)

    def test_does_not_wait_for_ever(self) -> None:
        self.respond_with({"delay": 2})
        with self.assertRaises(InkpadError) as caught:
            self.client(timeout_seconds=0.1, retries=0).get_card(**IDS)
        self.assertEqual((caught.exception.status, caught.exception.code), (0, "timed_out"))

    def test_says_that_nobody_is_there(self) -> None:
        closed = Inkpad(base_url="http://127.0.0.1:1", token="t", retries=0)
        self.clients.append(closed)
        with self.assertRaises(InkpadError) as caught:
            closed.get_status()
        self.assertEqual((caught.exception.status, caught.exception.code), (0, "no_response"))

    def test_follows_the_pages_of_a_list_to_its_end(self) -> None:
        link = '</api/v1/accounts/1/cards?scope=all&limit=2&cursor=Mg>; rel="next"'
        self.respond_with(
            {"headers": {"link": link}, "json": [{"id": 1}, {"id": 2}]}, {"json": [{"id": 3}]}
        )
        client = self.client()
        cards = client.iterate(client.list_cards, account_id=1, scope="all", limit=2)
        self.assertEqual([card["id"] for card in cards], [1, 2, 3])
        self.assertEqual(
            self.requests[1]["path"], "/api/v1/accounts/1/cards?limit=2&cursor=Mg&scope=all"
        )

    def test_lists_customers_by_cursor_each_exactly_once(self) -> None:
        link = '</api/v1/accounts/1/customers?cursor=Mg>; rel="next"'
        self.respond_with(
            {"headers": {"link": link}, "json": {"customers": [{"id": 1}]}},
            {"json": {"customers": [{"id": 2}]}},
        )
        client = self.client()
        seen = [one["id"] for one in client.iterate(client.list_customers, account_id=1)]
        self.assertEqual(seen, [1, 2])
        self.assertEqual(
            [request["path"] for request in self.requests],
            [f"/api/v1/accounts/1/customers?cursor={cursor}" for cursor in ("", "Mg")],
        )

    def test_returns_the_headers_of_a_result_with_it(self) -> None:
        headers = {
            "x-request-id": "r-1",
            "idempotent-replayed": "true",
            "ratelimit-remaining": "299",
            "x-unknown-parameters": "colour",
        }
        self.respond_with({"json": {"id": 7}, "headers": headers}, {"status": 204})
        client = self.client()
        response = client.with_response(client.get_card, **IDS)
        self.assertEqual(response.data["id"], 7)
        self.assertEqual((response.status, response.request_id), (200, "r-1"))
        for name, value in headers.items():
            self.assertEqual(response.headers[name.upper()], value)
        deleted = client.with_response(client.delete_reward, **IDS)
        self.assertEqual((deleted.status, deleted.request_id), (204, None))
        with self.assertRaisesRegex(TypeError, "with_response takes a method of the client"):
            client.with_response(len, [])

    def test_raises_an_error_with_the_headers(self) -> None:
        self.respond_with({"status": 404, "headers": {"ratelimit-remaining": "7"}})
        with self.assertRaises(InkpadError) as caught:
            self.client().get_card(**IDS)
        self.assertEqual(caught.exception.headers["RateLimit-Remaining"], "7")

    def test_sends_its_own_user_agent_and_the_headers_of_client_and_call(self) -> None:
        self.respond_with(*[{"json": {"id": 7}}] * 3)
        client = self.client(headers={"Prefer": "handling=strict", "X-Till": "1"})
        client.get_card(**IDS)
        client.get_card(**IDS, headers={"x-till": "2", "user-agent": "till/1"})
        client.archive_card(**IDS, headers={"idempotency-key": "mine"})
        first, second, third = [request["headers"] for request in self.requests]
        self.assertRegex(first["user-agent"], r"^inkpad-python/\d+\.\d+\.\d+ python/3\.")
        self.assertEqual((first["prefer"], first["x-till"]), ("handling=strict", "1"))
        self.assertEqual((second["x-till"], second["user-agent"]), ("2", "till/1"))
        self.assertEqual(third["idempotency-key"], "mine")

    def test_takes_the_store_of_the_client_where_a_call_names_none(self) -> None:
        self.respond_with({"json": []}, {"json": {"id": 7}}, {"json": []}, {"json": []})
        client = self.client(account_id=5)
        client.list_cards()
        client.get_card(id=7)
        client.list_cards(account_id=6)
        self.assertEqual([*client.iterate(client.list_cards)], [])
        self.assertEqual(
            [request["path"].replace("/api/v1/accounts", "") for request in self.requests],
            ["/5/cards", "/5/cards/7", "/6/cards", "/5/cards"],
        )
        with self.assertRaisesRegex(ValueError, "account_id is missing"):
            self.client().list_cards()

    def test_has_a_class_for_each_code_of_an_error(self) -> None:
        few = {"error": "too few stamps", "code": "insufficient_stamps"}
        self.respond_with({"status": 422, "json": few}, *[{"status": 400, "json": {"code": ["odd"]}}])
        with self.assertRaises(InsufficientStampsError):
            self.client().get_card(**IDS)
        with self.assertRaises(InkpadError) as caught:
            self.client().get_card(**IDS)
        self.assertEqual((type(caught.exception), caught.exception.code), (InkpadError, "unknown"))
        self.respond_with({"status": 418, "json": {"code": "not_known_yet"}}, {"delay": 2})
        with self.assertRaises(InkpadError) as caught:
            self.client().get_card(**IDS)
        self.assertEqual(
            (type(caught.exception), caught.exception.code), (InkpadError, "not_known_yet")
        )
        with self.assertRaises(TimedOutError):
            self.client(timeout_seconds=0.1, retries=0).get_card(**IDS)

    def test_returns_a_text_and_no_page_of_a_proxy(self) -> None:
        def export() -> Any:
            accept = "text/csv, application/x-ndjson"
            return self.client()._call("GET", "/a.csv", ids={}, query={}, accept=accept)

        content_type = {"content-type": "text/csv; charset=utf-8"}
        self.respond_with({"headers": content_type, "data": "é,1\r\n".encode()})
        self.assertEqual(export(), "é,1\r\n")
        self.assertEqual(self.requests[0]["headers"]["accept"], "text/csv, application/x-ndjson")
        for page in ({"headers": {"content-type": "text/html"}, "data": b"<h1>no</h1>"}, {}):
            self.respond_with(page)
            with self.assertRaises(InkpadError):
                export()

    def test_works_with_asyncio(self) -> None:
        link = '</api/v1/accounts/1/cards?cursor=Mg>; rel="next"'
        first_page = {"headers": {"link": link}, "json": [{"id": 1}]}
        self.respond_with(BUSY, {"json": {"id": 7}}, first_page, {"json": [{"id": 2}]})

        async def use() -> None:
            async with AsyncInkpad(base_url=self.url, token="t", account_id=1) as client:
                response = await client.with_response(client.archive_card, id=7)
                self.assertEqual((response.data["id"], response.status), (7, 200))
                cards = [card["id"] async for card in client.iterate(client.list_cards)]
                self.assertEqual(cards, [1, 2])
                self.respond_with({"status": 422, "json": {"code": "insufficient_stamps"}})
                with self.assertRaises(InsufficientStampsError):
                    await client.get_card(id=7)

        asyncio.run(use())
        first, second = self.keys()[:2]
        self.assertTrue(first)
        self.assertEqual(first, second)

    def test_waits_for_several_requests_at_once_with_asyncio(self) -> None:
        together = threading.Barrier(5)
        self.respond_with(*[{"together": together, "json": {"id": id}} for id in range(5)])

        async def use() -> None:
            async with AsyncInkpad(base_url=self.url, token="t") as client:
                calls = [client.with_response(client.get_card, **IDS) for _ in range(5)]
                ids = sorted(one.data["id"] for one in await asyncio.gather(*calls))
                self.assertEqual(ids, [0, 1, 2, 3, 4])
                self.respond_with({"delay": 2})
                with self.assertRaises(TimeoutError):
                    await asyncio.wait_for(client.get_card(**IDS), 0.1)

        asyncio.run(use())

    def test_serves_several_threads(self) -> None:
        self.respond_with(*[{"json": {"id": 7}}] * 20)
        client = self.client()
        threads = [threading.Thread(target=client.get_card, kwargs=IDS) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(self.requests), 20)


if __name__ == "__main__":
    unittest.main()
