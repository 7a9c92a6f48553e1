"""Webhooks: whether they come from Inkpad, and what they say."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal, Protocol, TypedDict, cast

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from .models import WebhookEvent

__all__ = [
    "FlatWebhookEvent",
    "Headers",
    "WebhookEvent",
    "WebhookVerificationError",
    "verify",
    "verify_flat_webhook",
    "verify_webhook",
]


class Headers(Protocol):
    """The headers of a request, as any framework has them."""

    def items(self) -> Iterable[tuple[str, str]]: ...


class FlatWebhookEvent(TypedDict):
    """What a subscription with payload_format flat is sent, with the id and type of its headers."""

    id: str
    type: Literal[
        "customer.created",
        "customer.updated",
        "customer_card.created",
        "stamp.earned",
        "stamp.removed",
        "reward.unlocked",
        "reward.redeemed",
        "webhook.test",
    ]
    data: dict[str, Any]


def verify(body: bytes, headers: Headers, secret: str) -> bool:
    """Whether the request was signed with this secret in the last five minutes.

    body: as it came, not parsed and put together again: the signature is over these bytes
    secret: the subscription's, with its whsec_
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
    webhook = Webhook(secret)
    given = {name.lower(): value for name, value in headers.items()}
    try:
        webhook.verify(body, given, json_parse=False)
    except ValueError as error:
        # Signatures that are no base64, and bodies that are no text, are nobody's but a forger's.
        raise WebhookVerificationError("Invalid Signature Headers") from error
    return given
