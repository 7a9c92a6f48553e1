import os

from inkpad_gen import AuthenticatedClient
from inkpad_gen.api.cards import list_cards
from inkpad_gen.api.customer_cards import stamp_customer_card
from inkpad_gen.api.webhook_subscriptions import list_webhook_subscriptions
from inkpad_gen.models import StampInput

client = AuthenticatedClient(
    base_url=os.environ["INKPAD_URL"],
    token=os.environ["INKPAD_TOKEN"],
    raise_on_unexpected_status=True,
)
account, customer, card = (int(os.environ[name]) for name in ("ACCOUNT", "CUSTOMER", "CARD"))
cards = list_cards.sync(account, client=client)
subscriptions = list_webhook_subscriptions.sync(account, client=client)
stamped = stamp_customer_card.sync(
    account, customer, card, client=client, body=StampInput(stamps=2)
)
print(f"{len(cards)} cards, {len(subscriptions)} subscriptions, {stamped.stamps_count} stamps")
