"""The client behind a proxy: one that opens tunnels as real ones do, and a service with TLS."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import select
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

from inkpad import AsyncInkpad, Inkpad, InkpadError
from inkpad.proxies import find_proxy

CREDENTIALS = "Basic " + base64.b64encode(b"ann:p@ss:word").decode()
NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    requests: list[dict[str, Any]]
    target: tuple[str, int]


class Service(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append({name.lower(): value for name, value in self.headers.items()})
        data = json.dumps({"id": 7}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class ConnectProxy(BaseHTTPRequestHandler):
    """Opens tunnels to the service, whatever its name: there is no DNS here."""

    server: Server

    def record(self) -> bool:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append({"line": self.requestline, **headers})
        if headers.get("proxy-authorization") == CREDENTIALS:
            return True
        self.send_response(407)
        self.send_header("proxy-authenticate", 'Basic realm="proxy"')
        self.send_header("content-length", "0")
        self.end_headers()
        return False

    def do_CONNECT(self) -> None:
        if not self.record():
            return
        with socket.create_connection(self.server.target) as target:
            self.send_response(200)
            self.end_headers()
            while True:
                ready, _, _ = select.select([self.connection, target], [], [])
                for one in ready:
                    data = one.recv(65536)
                    if not data:
                        self.close_connection = True
                        return
                    (target if one is self.connection else self.connection).sendall(data)

    def do_GET(self) -> None:
        if not self.record():
            return
        data = b'{"id": 8}'
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class ProxyTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        key, certificate = Path(folder.name, "key.pem"), Path(folder.name, "certificate.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
            + ["-nodes", "-days", "1", "-subj", "/CN=cards.example", "-keyout", str(key)]
            + ["-addext", "subjectAltName=DNS:cards.example", "-out", str(certificate)],
            check=True,
            capture_output=True,
        )
        self.service = self.start(Service)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.service.socket = context.wrap_socket(self.service.socket, server_side=True)
        self.proxy = self.start(ConnectProxy)
        self.proxy.target = ("127.0.0.1", self.service.server_port)
        self.at = f"127.0.0.1:{self.proxy.server_address[1]}"
        cleared = {name: "" for one in NAMES for name in (one, one.upper())}
        environment = patch.dict(os.environ, {**cleared, "SSL_CERT_FILE": str(certificate)})
        environment.start()
        self.addCleanup(environment.stop)

    def start(self, handler: type[BaseHTTPRequestHandler]) -> Server:
        server = Server(("127.0.0.1", 0), handler)
        server.requests = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def get_card(self, base_url: str = "https://cards.example", **options: Any) -> Any:
        with Inkpad(base_url=base_url, token="ink_secret", retries=0, **options) as inkpad:
            return inkpad.get_card(account_id=1, id=7)

    def test_opens_a_tunnel_and_tells_the_proxy_nothing_but_the_name(self) -> None:
        address = f"http://ann:p%40ss%3Aword@{self.at}"
        for options, variables in (
            ({"proxy": address}, {}),
            ({"proxy": address}, {"NO_PROXY": "*", "HTTPS_PROXY": "http://127.0.0.1:9"}),
            ({}, {"HTTPS_PROXY": address}),
            (
                {},
                {
                    "https_proxy": address.removeprefix("http://"),
                    "HTTPS_PROXY": "http://127.0.0.1:9",
                },
            ),
            ({}, {"ALL_PROXY": address, "NO_PROXY": "other.example, 10.0.0.0/8"}),
        ):
            self.proxy.requests.clear()
            self.service.requests.clear()
            with patch.dict(os.environ, variables):
                self.assertEqual(self.get_card(**options), {"id": 7})
            [opened] = self.proxy.requests
            self.assertRegex(opened["line"], "^CONNECT cards.example:443 ")
            self.assertEqual(opened["proxy-authorization"], CREDENTIALS)
            self.assertNotIn("authorization", opened)
            [request] = self.service.requests
            self.assertEqual(request["authorization"], "Bearer ink_secret")
            self.assertNotIn("proxy-authorization", request)

    def test_serves_asyncio_too(self) -> None:
        async def get() -> Any:
            address = f"http://ann:p%40ss%3Aword@{self.at}"
            async with AsyncInkpad(
                base_url="https://cards.example", token="ink_secret", proxy=address
            ) as inkpad:
                return await inkpad.get_card(account_id=1, id=7)

        self.assertEqual(asyncio.run(get()), {"id": 7})

    def test_sends_a_plain_request_to_the_proxy_of_http(self) -> None:
        address = f"http://ann:p%40ss%3Aword@{self.at}"
        for variables in (
            {"http_proxy": address},
            {"HTTP_PROXY": address},
            {"HTTP_PROXY": address, "HTTPS_PROXY": "http://127.0.0.1:9"},
            {"http_proxy": address, "HTTP_PROXY": "http://127.0.0.1:9"},
            {"HTTP_PROXY": address, "ALL_PROXY": "http://127.0.0.1:9"},
        ):
            self.proxy.requests.clear()
            with patch.dict(os.environ, variables):
                self.assertEqual(self.get_card("http://cards.example"), {"id": 8})
            self.assertEqual(
                self.proxy.requests[0]["line"],
                "GET http://cards.example/api/v1/accounts/1/cards/7 HTTP/1.1",
            )
        with patch.dict(os.environ, {"HTTP_PROXY": address}):
            self.assertIsNone(find_proxy("https://cards.example", None))

    def test_takes_no_proxy_from_the_header_of_a_cgi_request(self) -> None:
        forged = {"REQUEST_METHOD": "GET", "HTTP_PROXY": "http://attacker.example"}
        with patch.dict(os.environ, forged):
            self.assertIsNone(find_proxy("http://cards.example", None))
        for name in ("http_proxy", "all_proxy", "ALL_PROXY"):
            with patch.dict(os.environ, {**forged, name: "http://proxy.example"}):
                found = find_proxy("http://cards.example", None)
            self.assertEqual(found and found.url, "http://proxy.example:80", name)
        with patch.dict(os.environ, {**forged, "HTTPS_PROXY": "http://proxy.example"}):
            self.assertIsNotNone(find_proxy("https://cards.example", None))
        forged["http_proxy"] = "http://attacker.example"
        with patch.dict(os.environ, forged), patch("inkpad.proxies.os.name", "nt"):
            self.assertIsNone(find_proxy("http://cards.example", None))

    def test_says_that_the_proxy_refuses_without_its_password(self) -> None:
        for options in (
            {"proxy": f"http://ann:hunter2@{self.at}"},
            {"proxy": "http://ann:hunter2@127.0.0.1:1"},
        ):
            with self.assertRaises(InkpadError) as caught:
                self.get_card(**options)
            self.assertEqual(caught.exception.code, "no_response")
            self.assertNotIn("hunter2", str(caught.exception) + repr(caught.exception.__cause__))

    def test_refuses_a_proxy_that_cannot_be_one(self) -> None:
        for proxy in ("socks5://ann:hunter2@proxy.example", "http://", "http://ann:hunter2@h:port"):
            with self.assertRaisesRegex(ValueError, "proxy must be an http or https URL") as caught:
                self.get_card(proxy=proxy)
            self.assertNotIn("hunter2", str(caught.exception))
        with (
            patch.dict(os.environ, {"ALL_PROXY": "socks5://proxy.example"}),
            self.assertRaisesRegex(ValueError, "ALL_PROXY must be"),
        ):
            self.get_card()

    def test_reads_the_exceptions_of_no_proxy(self) -> None:
        for exceptions, url, is_excepted in (
            ("cards.example", "https://cards.example", True),
            ("CARDS.example.", "https://cards.example", True),
            ("example", "https://cards.example", True),
            (".example", "https://cards.example", True),
            (".cards.example", "https://cards.example", True),
            ("*.example", "https://cards.example", True),
            ("ds.example", "https://cards.example", False),
            ("other.example  cards.example", "https://cards.example", True),
            ("*", "https://cards.example", True),
            ("cards.example:443", "https://cards.example", True),
            ("cards.example:8443", "https://cards.example", False),
            ("cards.example:8443", "https://cards.example:8443", True),
            ("10.1.2.3", "https://10.1.2.3", True),
            ("10.0.0.0/8", "https://10.1.2.3", True),
            ("10.0.0.0/8,", "https://11.1.2.3", False),
            ("10.1.2.3:8443", "https://10.1.2.3", False),
            ("2.3", "https://10.1.2.3", False),
            ("::1", "https://[::1]", True),
            ("[::1]:8443", "https://[::1]:8443", True),
            ("fd00::/8", "https://[fd12::1]:8443", True),
            ("", "https://cards.example", False),
        ):
            with patch.dict(
                os.environ, {"HTTPS_PROXY": "http://proxy.example", "NO_PROXY": exceptions}
            ):
                proxy = find_proxy(url, None)
            self.assertEqual(proxy is None, is_excepted, (exceptions, url))
        with patch.dict(os.environ, {"HTTPS_PROXY": "http://proxy.example"}):
            self.assertIsNone(find_proxy("https://cards.example", ""))
