import { Module } from '@nestjs/common';
import { loadPart } from '#kernel/templates.js';
import { CardsModule } from '#cards/cards.module.js';
import { LocationsModule } from '#locations/locations.module.js';
import { SignInModule } from '#sign-in/sign-in.module.js';
import { SubscriptionsModule } from '#subscriptions/subscriptions.module.js';
import { WebhookDeliveriesPageController } from './webhook-deliveries.controller.js';
import { WebhookSecretsPageController } from './webhook-secrets.controller.js';
import { WebhookViews } from './webhook-views.service.js';
import { WebhooksController } from './webhooks.controller.js';

loadPart('event-choices', import.meta.url, './views/event-choices.eta');

/** Serves the webhooks of a store in the console. */
@Module({
  imports: [CardsModule, LocationsModule, SignInModule, SubscriptionsModule],
  controllers: [WebhooksController, WebhookSecretsPageController, WebhookDeliveriesPageController],
  providers: [WebhookViews],
})
export class WebhookPagesModule {}
