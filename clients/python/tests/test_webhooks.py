"""Webhooks that were signed here, and what others might send."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
import time
import unittest
from email.message import Message
from typing import Any
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

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


PRIVATE_KEY = Ed25519PrivateKey.from_private_bytes(KEY)
PUBLIC_KEY = f"whpk_{base64.b64encode(PRIVATE_KEY.public_key().public_bytes_raw()).decode()}"


def signed_with_private_key(offset: int = 0, **others: str | None) -> dict[str, str]:
    at = str(int(time.time()) + offset)
    signature = PRIVATE_KEY.sign(f"evt_1.{at}.".encode() + BODY)
    both = f"v1a,AAAA v1a,{base64.b64encode(signature).decode()}"
    names: dict[str, str | None] = {"Webhook_Timestamp": at, "Webhook_Signature": both, **others}
    return signed(offset, BODY, **names)


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

    def test_verifies_with_a_public_key(self) -> None:
        headers = signed_with_private_key()
        self.assertTrue(verify(BODY, headers, PUBLIC_KEY))
        self.assertEqual(verify_webhook(BODY, headers, PUBLIC_KEY), EVENT)
        flat = verify_flat_webhook(BODY, headers, PUBLIC_KEY)
        self.assertEqual(flat, {"id": "evt_1", "type": "webhook.test", "data": EVENT})

    def test_refuses_with_a_public_key_everything_else(self) -> None:
        other = Ed25519PrivateKey.from_private_bytes(bytes([8]) * 32).public_key()
        other_key = f"whpk_{base64.b64encode(other.public_bytes_raw()).decode()}"
        refused: dict[str, tuple[bytes, dict[str, Any], str]] = {
            "another body": (BODY + b" ", signed_with_private_key(), PUBLIC_KEY),
            "another key": (BODY, signed_with_private_key(), other_key),
            "another id": (BODY, signed_with_private_key(Webhook_Id="evt_2"), PUBLIC_KEY),
            "no signature": (BODY, signed_with_private_key(Webhook_Signature=None), PUBLIC_KEY),
            "no headers": (BODY, {}, PUBLIC_KEY),
            "a signature of a secret": (BODY, signed(), PUBLIC_KEY),
            "no base64": (BODY, signed_with_private_key(Webhook_Signature="v1a,A"), PUBLIC_KEY),
            "an old time": (BODY, signed_with_private_key(-330), PUBLIC_KEY),
            "a time ahead": (BODY, signed_with_private_key(330), PUBLIC_KEY),
            "no time": (BODY, signed_with_private_key(Webhook_Timestamp="now"), PUBLIC_KEY),
        }
        for what, given in refused.items():
            with self.subTest(what):
                self.assertFalse(verify(*given))
                with self.assertRaises(WebhookVerificationError):
                    verify_webhook(*given)

    def test_says_which_package_a_public_key_needs(self) -> None:
        with patch.dict(sys.modules, {"cryptography.exceptions": None}):
            with self.assertRaisesRegex(ImportError, "pip install cryptography"):
                verify(BODY, signed_with_private_key(), PUBLIC_KEY)

    def test_does_not_verify_with_an_empty_secret(self) -> None:
        with self.assertRaisesRegex(Exception, "may not be empty"):
            verify(BODY, signed(), "whsec_")


if __name__ == "__main__":
    unittest.main()
