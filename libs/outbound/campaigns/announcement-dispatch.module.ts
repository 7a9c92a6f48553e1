import { Module, type DynamicModule } from '@nestjs/common';
import { RecordMessageHandler } from '#loyalty/customers/customer-messages.commands.js';
import { StoreRegions } from '#loyalty/customers/store-regions.service.js';
import { MessageDispatchModule } from '#outbound/messages/message-dispatch.module.js';
import { MessagesModule } from '#outbound/messages/messages.module.js';
import { CustomerCardReadsModule } from '#loyalty/stamping/customer-card-reads.module.js';
import { AnnouncementAddressing } from './announcement-addressing.service.js';
import { AnnouncementDispatch } from './announcement-dispatch.service.js';
import { AnnouncementQueue } from './announcement-queue.service.js';
import { Audiences } from './audiences.service.js';
import { CustomerMessageQueue } from './customer-message-queue.service.js';
import { CustomerMessageRetention } from './customer-message-retention.service.js';
import { CustomerMessageSending } from './customer-message-sending.service.js';
import { MessageContexts } from './message-contexts.service.js';
import { MessageRecipients } from './message-recipients.service.js';
import { MessageSettingsService } from './message-settings.service.js';
import { RuleChecks } from './rule-checks.service.js';

/** Addresses and sends messages to the holders of cards, in the dispatcher. */
@Module({})
export class AnnouncementDispatchModule {
  /** Creates the module. @param passes the one that sends the updates of passes */
  static forRoot(passes: DynamicModule): DynamicModule {
    return {
      module: AnnouncementDispatchModule,
      imports: [passes, CustomerCardReadsModule, MessagesModule, MessageDispatchModule],
      providers: [
        AnnouncementAddressing,
        AnnouncementDispatch,
        AnnouncementQueue,
        Audiences,
        CustomerMessageQueue,
        CustomerMessageRetention,
        CustomerMessageSending,
        MessageContexts,
        MessageRecipients,
        MessageSettingsService,
        RecordMessageHandler,
        RuleChecks,
        StoreRegions,
      ],
      exports: [AnnouncementDispatch, CustomerMessageRetention, RuleChecks],
    };
  }
}
