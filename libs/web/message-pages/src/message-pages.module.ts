import { Module } from '@nestjs/common';
import { loadPart } from '#kernel/templates.js';
import { CardsModule } from '#cards/cards.module.js';
import { AnnouncementsModule } from '#announcements/announcements.module.js';
import { OutboxPageModule } from '#outbox/outbox.module.js';
import { AnnouncementPagesController } from './announcement-pages.controller.js';
import { AnnouncementSendingController } from './announcement-sending.controller.js';
import { MessageSettingsPageController } from './message-settings-page.controller.js';
import { MessageStores } from './message-stores.service.js';
import { RulePagesController } from './rule-pages.controller.js';
import { RuleSwitchingController } from './rule-switching.controller.js';

for (const name of ['content', 'preview', 'reach', 'recipients']) {
  loadPart(`message-${name}`, import.meta.url, `./views/message-${name}.eta`);
}

/** Serves the pages about messages, also those of the outbox. */
@Module({
  imports: [OutboxPageModule, AnnouncementsModule, CardsModule],
  controllers: [
    AnnouncementPagesController,
    AnnouncementSendingController,
    RulePagesController,
    RuleSwitchingController,
    MessageSettingsPageController,
  ],
  providers: [MessageStores],
})
export class MessagePagesModule {}
