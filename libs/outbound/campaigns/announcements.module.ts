import { Module } from '@nestjs/common';
import { StoreRegions } from '#loyalty/customers/store-regions.service.js';
import { CustomerCardReadsModule } from '#loyalty/stamping/customer-card-reads.module.js';
import { announcementHandlers } from './announcement.commands.js';
import { AnnouncementsController } from './announcements.controller.js';
import { AnnouncementsService } from './announcements.service.js';
import { Audiences } from './audiences.service.js';
import { MessageRecipients } from './message-recipients.service.js';
import { messageRuleHandlers } from './message-rule.commands.js';
import { MessageRulesController } from './message-rules.controller.js';
import { MessageRulesService } from './message-rules.service.js';
import { UpdateMessageSettingsHandler } from './message-settings.commands.js';
import { MessageSettingsController } from './message-settings.controller.js';
import { MessageSettingsService } from './message-settings.service.js';
import { RuleReaches } from './rule-reaches.service.js';

const SERVICES = [
  AnnouncementsService,
  Audiences,
  MessageRecipients,
  MessageRulesService,
  MessageSettingsService,
  RuleReaches,
];

@Module({
  imports: [CustomerCardReadsModule],
  controllers: [AnnouncementsController, MessageRulesController, MessageSettingsController],
  providers: [
    ...SERVICES,
    StoreRegions,
    ...announcementHandlers,
    ...messageRuleHandlers,
    UpdateMessageSettingsHandler,
  ],
  exports: SERVICES,
})
export class AnnouncementsModule {}
