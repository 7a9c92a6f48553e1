import { Module } from '@nestjs/common';
import { StoreRegions } from '#loyalty/customers/store-regions.service.js';
import { CustomerCardReadsModule } from '#loyalty/stamping/customer-card-reads.module.js';
import { AnnouncementsController } from './announcements.controller.js';
import { Audiences } from './audiences.service.js';
import { campaignHandlers, CampaignWrites } from './campaign.commands.js';
import { CampaignsService } from './campaigns.service.js';
import { MessageContexts } from './message-contexts.service.js';
import { MessageRecipients } from './message-recipients.service.js';
import { MessageRulesController } from './message-rules.controller.js';
import { updateMessageSettingsHandler } from './message-settings.commands.js';
import { MessageSettingsController } from './message-settings.controller.js';
import { MessageSettingsService } from './message-settings.service.js';
import { RuleReaches } from './rule-reaches.service.js';

const SERVICES = [
  Audiences,
  CampaignsService,
  MessageContexts,
  MessageRecipients,
  MessageSettingsService,
  RuleReaches,
];

@Module({
  imports: [CustomerCardReadsModule],
  controllers: [AnnouncementsController, MessageRulesController, MessageSettingsController],
  providers: [
    ...SERVICES,
    StoreRegions,
    CampaignWrites,
    ...campaignHandlers,
    updateMessageSettingsHandler,
  ],
  exports: SERVICES,
})
export class CampaignsModule {}
