import { Module } from '@nestjs/common';
import { NameLookup } from './name-lookup.client.js';
import { WebhookSecrets } from './webhook-secrets.service.js';
import { WebhookClient } from './webhook.client.js';

@Module({
  providers: [NameLookup, WebhookClient, WebhookSecrets],
  exports: [NameLookup, WebhookClient, WebhookSecrets],
})
export class SendingModule {}
