import org.openapitools.client.ApiClient;
import org.openapitools.client.api.CardsApi;
import org.openapitools.client.api.CustomerCardsApi;
import org.openapitools.client.api.WebhookSubscriptionsApi;
import org.openapitools.client.model.StampInput;

public class Main {
  static long id(String name) {
    return Long.parseLong(System.getenv(name));
  }

  public static void main(String[] args) throws Exception {
    ApiClient client = new ApiClient();
    client.updateBaseUri(System.getenv("INKPAD_URL"));
    client.setRequestInterceptor(
        request -> request.header("Authorization", "Bearer " + System.getenv("INKPAD_TOKEN")));
    long account = id("ACCOUNT");
    int cards = new CardsApi(client)
            .listCards(CardsApi.APIListCardsRequest.newBuilder().accountId(account).build())
            .size();
    int subscriptions =
        new WebhookSubscriptionsApi(client)
            .listWebhookSubscriptions(
                WebhookSubscriptionsApi.APIListWebhookSubscriptionsRequest.newBuilder()
                    .accountId(account)
                    .build())
            .size();
    StampInput two = new StampInput().stamps(2);
    Long stamps =
        new CustomerCardsApi(client)
            .stampCustomerCard(
                CustomerCardsApi.APIStampCustomerCardRequest.newBuilder()
                    .accountId(account)
                    .customerId(id("CUSTOMER"))
                    .id(id("CARD"))
                    .stampInput(two)
                    .build())
            .getStampsCount();
    System.out.printf("%d cards, %d subscriptions, %d stamps%n", cards, subscriptions, stamps);
  }
}
