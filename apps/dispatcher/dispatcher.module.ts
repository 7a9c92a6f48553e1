import { Module, type DynamicModule } from '@nestjs/common';
import type { Config } from '#configuration/config.js';
import { QUEUE_LIMITS } from '#platform/database/data-source.js';
import { DatabaseModule } from '#platform/database/database.module.js';
import { EventStoreModule } from '#platform/event-store/event-store.module.js';
import { BackupMetrics } from '#platform/operations/backup-metrics.js';
import { DatabaseWarnings } from '#platform/operations/database-warnings.js';
import { Readiness } from '#platform/operations/readiness.js';
import { AddressUpkeep } from '#identity/address-upkeep.service.js';
import { HistoryFillingModule } from '#loyalty/history/history-filling.module.js';
import { StatisticsFillingModule } from '#loyalty/statistics/statistics-filling.module.js';
import { PhoneNormalizationModule } from '#loyalty/customers/phone-normalization.module.js';
import { ImportDispatchModule } from '#loyalty/imports/import-dispatch.module.js';
import { MessageDispatchModule } from '#outbound/messages/message-dispatch.module.js';
import { TransparencyLogModule } from '#outbound/transparency/transparency-log.module.js';
import { PassDispatchModule } from '#outbound/passes/pass-dispatch.module.js';
import { DispatchModule } from '#outbound/dispatch/dispatch.module.js';
import { WebPushSendingModule } from '#web/web-card/web-push.module.js';
import { WebPushes } from '#web/web-card/web-pushes.service.js';
import { GoogleClassSender } from '#outbound/google-wallet/google-class.sender.js';
import { GoogleObjectSender } from '#outbound/google-wallet/google-object.sender.js';
import { GoogleSendingModule } from '#outbound/google-wallet/google-wallet.module.js';
import { ApplePushes } from '#outbound/apple-wallet/apple-pushes.service.js';
import { ApplePushModule } from '#outbound/apple-wallet/apple-wallet.module.js';
import { CampaignDispatchModule } from '#outbound/campaigns/campaign-dispatch.module.js';
import { GeocodingModule } from '#outbound/geocoding/geocoding.module.js';
import { customerSubjects } from '#loyalty/stamping/customer-subjects.js';
import { plainTables, readModels } from '../read-models.js';
import { migrations } from '../schema/migrations.js';

@Module({})
export class DispatcherModule {
  static forRoot(config: Config): DynamicModule {
    const passes = PassDispatchModule.forRoot(
      [ApplePushModule, GoogleSendingModule, WebPushSendingModule],
      [ApplePushes, GoogleClassSender, GoogleObjectSender, WebPushes],
    );
    return {
      module: DispatcherModule,
      imports: [
        DatabaseModule.forRoot(config, 'dispatcher', QUEUE_LIMITS, migrations),
        EventStoreModule.forRoot({
          readModels,
          plainTables,
          subjects: customerSubjects,
        }),
        HistoryFillingModule,
        StatisticsFillingModule,
        PhoneNormalizationModule,
        ImportDispatchModule,
        MessageDispatchModule,
        TransparencyLogModule,
        DispatchModule,
        GeocodingModule,
        passes,
        CampaignDispatchModule.forRoot(passes),
      ],
      providers: [AddressUpkeep, BackupMetrics, DatabaseWarnings, Readiness],
    };
  }
}
