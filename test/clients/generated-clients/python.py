import os

import inkpad_gen as inkpad

settings = inkpad.Configuration(
    host=os.environ["INKPAD_URL"], access_token=os.environ["INKPAD_TOKEN"]
)
account, customer, card = (int(os.environ[name]) for name in ("ACCOUNT", "CUSTOMER", "CARD"))
client = inkpad.ApiClient(settings)
cards = inkpad.CardsApi(client).list_cards(account)
subscriptions = inkpad.WebhookSubscriptionsApi(client).list_webhook_subscriptions(account)
stamped = inkpad.CustomerCardsApi(client).stamp_customer_card(
    account, customer, card, inkpad.StampInput(stamps=2)
)
print(f"{len(cards)} cards, {len(subscriptions)} subscriptions, {stamped.stamps_count} stamps")
