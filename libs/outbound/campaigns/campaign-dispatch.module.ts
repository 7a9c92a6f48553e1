import { Module, type DynamicModule } from '@nestjs/common';
import { RecordMessageHandler } from '#loyalty/customers/customer-messages.commands.js';
import { StoreRegions } from '#loyalty/customers/store-regions.service.js';
import { MessageDispatchModule } from '#outbound/messages/message-dispatch.module.js';
import { MessagesModule } from '#outbound/messages/messages.module.js';
import { CustomerCardReadsModule } from '#loyalty/stamping/customer-card-reads.module.js';
import { CampaignAddressing } from './campaign-addressing.service.js';
import { CampaignDispatch } from './campaign-dispatch.service.js';
import { CampaignQueue } from './campaign-queue.service.js';
import { Audiences } from './audiences.service.js';
import { CampaignMessages } from './campaign-messages.service.js';
import { MessageContexts } from './message-contexts.service.js';
import { MessageRecipients } from './message-recipients.service.js';
import { MessageRetention } from './message-retention.service.js';
import { MessageSettingsService } from './message-settings.service.js';
import { RuleChecks } from './rule-checks.service.js';

/** Addresses campaigns, and sends messages to the holders of cards, in the dispatcher. */
@Module({})
export class CampaignDispatchModule {
  /** Creates the module. @param passes the one that sends the updates of passes */
  static forRoot(passes: DynamicModule): DynamicModule {
    return {
      module: CampaignDispatchModule,
      imports: [passes, CustomerCardReadsModule, MessagesModule, MessageDispatchModule],
      providers: [
        CampaignAddressing,
        CampaignDispatch,
        CampaignQueue,
        Audiences,
        CampaignMessages,
        MessageContexts,
        MessageRecipients,
        MessageRetention,
        MessageSettingsService,
        RecordMessageHandler,
        RuleChecks,
        StoreRegions,
      ],
      exports: [CampaignDispatch, MessageRetention],
    };
  }
}
