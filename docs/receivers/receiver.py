"""A whole receiver of Inkpad's webhooks, for Python 3.9 or newer, without any package.
A public key needs one: pip install cryptography

    WEBHOOK_SECRET=whsec_… python3 receiver.py

Each event is stored before the response and handled afterwards, so that none is lost when this
program is killed, and none is handled again when it comes twice. A folder does for that; in your
database it is one statement:
    insert into webhook_events (id, body) values (%s, %s) on conflict do nothing
"""

import base64
import binascii
import hashlib
import hmac
import json
import os
import queue
import re
import sys
import threading
import time
import traceback
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SECRET = os.environ.get("WEBHOOK_SECRET") or sys.exit("Set WEBHOOK_SECRET to your subscription's")
EVENTS = Path(os.environ.get("EVENTS_DIR", "events"))
HOST = os.environ.get("HOST", "127.0.0.1")
PORT = int(os.environ.get("PORT", "8787"))
BODY_LIMIT = 1024 * 1024
TRY_AGAIN_SECONDS = 60

waiting: "queue.Queue[str]" = queue.Queue()


def handle(event: dict) -> None:
    """Your code. What it raises is tried again a minute later, so it has to be able to run twice."""
    print(f"handled {event['id']} {event['type']}", flush=True)


def verify(secret: str, id: str, timestamp: str, signatures: str, body: bytes) -> bool:
    """Takes a secret (whsec_…) or a public key (whpk_…)."""
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > 300:
        return False
    signed = f"{id}.{timestamp}.".encode() + body
    if secret.startswith("whpk_"):
        return any(is_signed(secret, one, signed) for one in signatures.split(" "))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(digest)
    return any(hmac.compare_digest(expected, one.encode()) for one in signatures.split(" "))


def is_signed(public_key: str, signature: str, signed: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    version, _, encoded = signature.partition(",")
    raw = base64.b64decode(public_key.removeprefix("whpk_"))
    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(base64.b64decode(encoded), signed)
        return version == "v1a"
    except (InvalidSignature, binascii.Error):
        return False


def store(id: str, body: bytes) -> bool:
    """False if the event is there already: this is a duplicate."""
    draft = EVENTS / f"{id}.json.{uuid.uuid4()}"
    with open(draft, "xb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    try:
        # The file has this name only once it is whole, and the first one keeps it.
        os.link(draft, EVENTS / f"{id}.json")
        return True
    except FileExistsError:
        return False
    finally:
        draft.unlink()


def work() -> None:
    """One after the other, in the order in which they came."""
    while True:
        id = waiting.get()
        try:
            handle(json.loads((EVENTS / f"{id}.json").read_bytes()))
            (EVENTS / f"{id}.done").touch()
        except Exception:
            print(f"{id} will be tried again:", traceback.format_exc(), file=sys.stderr, flush=True)
            threading.Timer(TRY_AGAIN_SECONDS, waiting.put, [id]).start()


class Receiver(BaseHTTPRequestHandler):
    timeout = 10

    def do_POST(self) -> None:
        try:
            self.respond(self.receive())
        except Exception:
            traceback.print_exc()
            self.respond(500)  # Inkpad tries again.

    def receive(self) -> int:
        length = self.headers.get("content-length", "")
        if not length.isdecimal():
            return 411
        if int(length) > BODY_LIMIT:
            return 413
        # The signature is over these bytes: parse nothing before it is verified.
        body = self.rfile.read(int(length))
        names = ("webhook-id", "webhook-timestamp", "webhook-signature")
        id, timestamp, signatures = (self.headers.get(name, "") for name in names)
        if not verify(SECRET, id, timestamp, signatures, body):
            return 401
        # It becomes the name of a file.
        if not re.fullmatch(r"\w{1,64}", id, re.ASCII):
            return 400
        if store(id, body):
            waiting.put(id)
        return 204

    def respond(self, status: int) -> None:
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


EVENTS.mkdir(parents=True, exist_ok=True)
for path in sorted(EVENTS.glob("*.json")):
    if not path.with_suffix(".done").exists():
        waiting.put(path.stem)
threading.Thread(target=work, daemon=True).start()
server = ThreadingHTTPServer((HOST, PORT), Receiver)
print(f"listening on {HOST}:{PORT}", flush=True)
server.serve_forever()
