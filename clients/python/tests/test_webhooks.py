"""Webhooks that were signed here, and what others might send."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
import unittest
from email.message import Message
from typing import Any

from inkpad.webhooks import (
    WebhookVerificationError,
    verify,
    verify_flat_webhook,
    verify_webhook,
)

KEY = bytes([7]) * 32
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
EVENT = {
    "id": "evt_1",
    "type": "webhook.test",
    "timestamp": "2026-03-01T12:00:00Z",
    "account_id": 1,
    "data": {"message": "é"},
}
BODY = json.dumps(EVENT, ensure_ascii=False).encode()


def signed(offset: int = 0, body: bytes = BODY, **others: str | None) -> dict[str, str]:
    at = str(int(time.time()) + offset)
    digest = hmac.new(KEY, f"evt_1.{at}.".encode() + body, hashlib.sha256).digest()
    given: dict[str, str | None] = {
        "Webhook-Id": "evt_1",
        "Webhook-Timestamp": at,
        "Webhook-Signature": f"v1,AAAA v1,{base64.b64encode(digest).decode()}",
        "Service-Event": "webhook.test",
        **{name.replace("_", "-"): value for name, value in others.items()},
    }
    return {name: value for name, value in given.items() if value is not None}


class WebhooksTest(unittest.TestCase):
    def test_reads_a_webhook_whose_signature_is_right(self) -> None:
        self.assertTrue(verify(BODY, signed(), SECRET))
        self.assertEqual(verify_webhook(BODY, signed(), SECRET), EVENT)
        flat = verify_flat_webhook(BODY, signed(), SECRET)
        self.assertEqual(flat, {"id": "evt_1", "type": "webhook.test", "data": EVENT})

    def test_takes_headers_as_a_server_has_them(self) -> None:
        message = Message()
        for name, value in signed().items():
            message[name] = value
        self.assertEqual(verify_webhook(BODY, message, SECRET), EVENT)

    def test_refuses_everything_else(self) -> None:
        other = f"whsec_{base64.b64encode(bytes([8]) * 32).decode()}"
        refused: dict[str, tuple[bytes, dict[str, Any], str]] = {
            "another body": (BODY + b" ", signed(), SECRET),
            "another secret": (BODY, signed(), other),
            "another id": (BODY, signed(Webhook_Id="evt_2"), SECRET),
            "no signature": (BODY, signed(Webhook_Signature=None), SECRET),
            "no id": (BODY, signed(Webhook_Id=None), SECRET),
            "no time": (BODY, signed(Webhook_Timestamp=None), SECRET),
            "no headers": (BODY, {}, SECRET),
            "a signature without a version": (BODY, signed(Webhook_Signature="AAAA"), SECRET),
            "a signature that is no base64": (BODY, signed(Webhook_Signature="v1,A"), SECRET),
            "an old time": (BODY, signed(-330), SECRET),
            "a time ahead": (BODY, signed(330), SECRET),
            "a time that is none": (BODY, signed(Webhook_Timestamp="now"), SECRET),
            "a body that is no text": (b"\xff", signed(), SECRET),
        }
        for what, given in refused.items():
            with self.subTest(what):
                self.assertFalse(verify(*given))
                with self.assertRaises(WebhookVerificationError):
                    verify_webhook(*given)

    def test_does_not_verify_with_an_empty_secret(self) -> None:
        with self.assertRaisesRegex(Exception, "may not be empty"):
            verify(BODY, signed(), "whsec_")


if __name__ == "__main__":
    unittest.main()
