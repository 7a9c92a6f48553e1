<?php

require '/usr/share/php/GuzzleHttp/autoload.php';
spl_autoload_register(function (string $class): void {
    $path = str_replace(['OpenAPI\\Client\\', '\\'], ['', '/'], $class);
    if (is_file(__DIR__ . "/lib/$path.php")) {
        require __DIR__ . "/lib/$path.php";
    }
});

use OpenAPI\Client\Api\CardsApi;
use OpenAPI\Client\Api\CustomerCardsApi;
use OpenAPI\Client\Api\WebhookSubscriptionsApi;
use OpenAPI\Client\Model\StampInput;

$settings = (new OpenAPI\Client\Configuration())
    ->setHost(getenv('INKPAD_URL'))
    ->setAccessToken(getenv('INKPAD_TOKEN'));
$http = new GuzzleHttp\Client();
$account = (int) getenv('ACCOUNT');
$cards = (new CardsApi($http, $settings))->listCards($account);
$subscriptions = (new WebhookSubscriptionsApi($http, $settings))->listWebhookSubscriptions($account);
$card = (new CustomerCardsApi($http, $settings))->stampCustomerCard(
    $account,
    (int) getenv('CUSTOMER'),
    (int) getenv('CARD'),
    new StampInput(['stamps' => 2]),
);
printf("%d cards, %d subscriptions, %d stamps\n", count($cards), count($subscriptions), $card->getStampsCount());
