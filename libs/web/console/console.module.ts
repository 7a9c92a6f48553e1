import { Module } from '@nestjs/common';
import { AccountsModule } from '#loyalty/accounts/accounts.module.js';
import { CampaignsModule } from '#outbound/campaigns/campaigns.module.js';
import { CardImagesModule } from '#outbound/card-images/card-images.module.js';
import { CardsModule } from '#loyalty/cards/cards.module.js';
import { CustomersModule } from '#loyalty/customers/customers.module.js';
import { ExportsModule } from '#loyalty/exports/exports.module.js';
import { AuditModule } from '#loyalty/history/audit.module.js';
import { HistoryModule } from '#loyalty/history/history.module.js';
import { ImportsModule } from '#loyalty/imports/imports.module.js';
import { loadPart } from '#platform/kernel/templates.js';
import { LocationsModule } from '#loyalty/locations/locations.module.js';
import { MessagesModule } from '#outbound/messages/messages.module.js';
import { PassesModule } from '#outbound/passes/passes.module.js';
import { RewardsModule } from '#loyalty/rewards/rewards.module.js';
import { SignInModule } from '#web/sign-in/sign-in.module.js';
import { StampingModule } from '#loyalty/stamping/stamping.module.js';
import { StatisticsModule } from '#loyalty/statistics/statistics.module.js';
import { SubscriptionsModule } from '#outbound/subscriptions/subscriptions.module.js';
import { BrandPagesController } from './brand/brand-pages.controller.js';
import { CardArchiveController } from './cards/card-archive.controller.js';
import { CardDesigns } from './cards/card-designs.service.js';
import { CardLists } from './cards/card-lists.service.js';
import { CardPagesController } from './cards/card-pages.controller.js';
import {
  CardPicturesController,
  CardPreviewsController,
} from './cards/card-previews.controller.js';
import { PreviewLinks } from './cards/preview-links.service.js';
import { CorrectionPagesController } from './customers/correction-pages.controller.js';
import { CustomerListController } from './customers/customer-list.controller.js';
import { CustomerPageController } from './customers/customer-page.controller.js';
import { CustomerView } from './customers/customer-view.service.js';
import { HistoryPageController } from './customers/history-page.controller.js';
import { MergePagesController } from './customers/merge-pages.controller.js';
import { Timeline } from './customers/timeline.service.js';
import { AddressPlaces } from './locations/address-places.service.js';
import { LocationPagesController } from './locations/location-pages.controller.js';
import { CampaignFormsController } from './messages/campaign-forms.controller.js';
import { CampaignListsController } from './messages/campaign-lists.controller.js';
import { CampaignPageController } from './messages/campaign-page.controller.js';
import { MessageSettingsPageController } from './messages/message-settings-page.controller.js';
import { MessageLimits } from '#outbound/messages/message-limits.service.js';
import { MessagePreviews } from './messages/message-previews.service.js';
import { MessageStores } from './messages/message-stores.service.js';
import { NumbersController } from './numbers/numbers.controller.js';
import { RecordNames } from './numbers/record-names.service.js';
import { TodaysNumbers } from './numbers/todays-numbers.service.js';
import { OutboxController } from './outbox/outbox.controller.js';
import { OverviewController } from './overview/overview.controller.js';
import { StoreSetup } from './overview/store-setup.service.js';
import { AuditPageController } from './settings/audit-page.controller.js';
import { InvitationController } from './settings/invitation.controller.js';
import { NewStoreController } from './settings/new-store.controller.js';
import { SecondFactorRuleController } from './settings/second-factor-rule.controller.js';
import { StoreNameController } from './settings/store-name.controller.js';
import { StoreSettingsController } from './settings/store-settings.controller.js';
import { StoreTokensController } from './settings/store-tokens.controller.js';
import { StoreUsersController } from './settings/store-users.controller.js';
import { ImportPagesController } from './transfers/import-pages.controller.js';
import { ImportPages } from './transfers/import-pages.service.js';
import { TransferPages } from './transfers/transfer-pages.service.js';
import { TransfersController } from './transfers/transfers.controller.js';
import { WebhookDeliveriesPageController } from './webhooks/webhook-deliveries.controller.js';
import { WebhookSecretsPageController } from './webhooks/webhook-secrets.controller.js';
import { WebhookViews } from './webhooks/webhook-views.service.js';
import { WebhooksController } from './webhooks/webhooks.controller.js';

loadPart('timeline', import.meta.url, './customers/views/timeline.eta');
loadPart('reasons', import.meta.url, './customers/views/reasons.eta');
for (const name of ['consent', 'content', 'preview', 'reach', 'recipients']) {
  loadPart(`message-${name}`, import.meta.url, `./messages/views/message-${name}.eta`);
}
loadPart('checks', import.meta.url, './webhooks/views/checks.eta');

/** Serves the pages on which a store is run, but for its counter, posters and the account of the user. */
@Module({
  imports: [
    AccountsModule,
    CampaignsModule,
    AuditModule,
    CardsModule,
    CustomersModule,
    ExportsModule,
    HistoryModule,
    ImportsModule,
    LocationsModule,
    MessagesModule,
    PassesModule,
    RewardsModule,
    SignInModule,
    StampingModule,
    StatisticsModule,
    CardImagesModule,
    SubscriptionsModule,
  ],
  controllers: [
    SecondFactorRuleController,
    StoreUsersController,
    StoreTokensController,
    StoreNameController,
    StoreSettingsController,
    AuditPageController,
    InvitationController,
    NewStoreController,
    BrandPagesController,
    CardArchiveController,
    CardPagesController,
    CardPicturesController,
    CardPreviewsController,
    CustomerListController,
    CustomerPageController,
    CorrectionPagesController,
    MergePagesController,
    HistoryPageController,
    LocationPagesController,
    CampaignFormsController,
    CampaignListsController,
    CampaignPageController,
    MessageSettingsPageController,
    WebhooksController,
    WebhookSecretsPageController,
    WebhookDeliveriesPageController,
    TransfersController,
    ImportPagesController,
    OutboxController,
    NumbersController,
    OverviewController,
  ],
  providers: [
    CardDesigns,
    CardLists,
    PreviewLinks,
    CustomerView,
    Timeline,
    AddressPlaces,
    MessageLimits,
    MessagePreviews,
    MessageStores,
    WebhookViews,
    ImportPages,
    TransferPages,
    RecordNames,
    TodaysNumbers,
    StoreSetup,
  ],
})
export class ConsoleModule {}
