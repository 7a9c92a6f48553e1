import { Module } from '@nestjs/common';
import { NameLookup } from './name-lookup.client.js';
import { WebhookClient } from './webhook.client.js';

@Module({ providers: [NameLookup, WebhookClient], exports: [NameLookup, WebhookClient] })
export class SendingModule {}
