"""Webhooks: whether they come from Inkpad, and what they say."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterable
from typing import Any, Protocol, TypedDict, cast

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from .models import WebhookEvent, WebhookEventType

__all__ = [
    "FlatWebhookEvent",
    "Headers",
    "WebhookEvent",
    "WebhookVerificationError",
    "verify",
    "verify_flat_webhook",
    "verify_webhook",
]

_PUBLIC_KEY_PREFIX = "whpk_"
_TOLERANCE_SECONDS = 5 * 60
# Python refuses to read numbers of thousands of digits.
_MAX_TIMESTAMP_DIGITS = 15


class Headers(Protocol):
    """The headers of a request, as any framework has them."""

    def items(self) -> Iterable[tuple[str, str]]: ...


class FlatWebhookEvent(TypedDict):
    """What a subscription with payload_format flat is sent, with the id and type of its headers."""

    id: str
    type: WebhookEventType
    data: dict[str, Any]


def verify(body: bytes, headers: Headers, secret: str) -> bool:
    """Whether the request was signed with this secret in the last five minutes.

    body: as it came, not parsed and put together again: the signature is over these bytes
    secret: the subscription's, with its whsec_, or its public_key, with its whpk_
    """
    try:
        _verified(body, headers, secret)
    except WebhookVerificationError:
        return False
    return True


def verify_webhook(body: bytes, headers: Headers, secret: str) -> WebhookEvent:
    """The event in a request. `type` tells which one it is.

    Raises WebhookVerificationError unless `verify` is true.
    """
    _verified(body, headers, secret)
    return cast(WebhookEvent, json.loads(body))


def verify_flat_webhook(body: bytes, headers: Headers, secret: str) -> FlatWebhookEvent:
    """The same for a subscription with payload_format flat.

    Raises WebhookVerificationError unless `verify` is true.
    """
    given = _verified(body, headers, secret)
    event = {"id": given["webhook-id"], "type": given.get("service-event")}
    return cast(FlatWebhookEvent, {**event, "data": json.loads(body)})


def _verified(body: bytes, headers: Headers, secret: str) -> dict[str, str]:
    given = {name.lower(): value for name, value in headers.items()}
    if secret.startswith(_PUBLIC_KEY_PREFIX):
        _verify_with_public_key(body, given, secret)
        return given
    webhook = Webhook(secret)
    try:
        webhook.verify(body, given, json_parse=False)
    except ValueError as error:
        # Signatures that are no base64, and bodies that are no text, are nobody's but a forger's.
        raise WebhookVerificationError("Invalid Signature Headers") from error
    return given


def _verify_with_public_key(body: bytes, headers: dict[str, str], public_key: str) -> None:
    """Verifies signatures of scheme v1a, which `standardwebhooks` does not know."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise ImportError(
            "Public keys need another package: pip install cryptography"
        ) from error
    raw = base64.b64decode(public_key.removeprefix(_PUBLIC_KEY_PREFIX))
    key = Ed25519PublicKey.from_public_bytes(raw)
    identifier = headers.get("webhook-id")
    timestamp = headers.get("webhook-timestamp")
    signatures = headers.get("webhook-signature")
    if not identifier or not timestamp or not signatures:
        raise WebhookVerificationError("Missing required headers")
    is_number = timestamp.isascii() and timestamp.isdigit()
    if not is_number or len(timestamp) > _MAX_TIMESTAMP_DIGITS:
        raise WebhookVerificationError("Invalid Signature Headers")
    age = int(time.time()) - int(timestamp)
    if abs(age) > _TOLERANCE_SECONDS:
        raise WebhookVerificationError(f"Message timestamp too {'old' if age > 0 else 'new'}")
    signed = f"{identifier}.{timestamp}.".encode() + body
    for one in signatures.split(" "):
        version, _, signature = one.partition(",")
        if version != "v1a":
            continue
        try:
            key.verify(base64.b64decode(signature), signed)
            return
        # A signature that is no base64 is a ValueError.
        except (InvalidSignature, ValueError):
            continue
    raise WebhookVerificationError("No matching signature found")
