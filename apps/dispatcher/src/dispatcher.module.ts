import { Module, type DynamicModule } from '@nestjs/common';
import type { Config } from '#configuration/config.js';
import { QUEUE_LIMITS } from '#database/data-source.js';
import { DatabaseModule } from '#database/database.module.js';
import { EventStoreModule } from '#event-store/event-store.module.js';
import { BackupMetrics } from '#operations/backup-metrics.js';
import { DatabaseWarnings } from '#operations/database-warnings.js';
import { Readiness } from '#operations/readiness.js';
import { AddressUpkeep } from '#identity/address-upkeep.service.js';
import { HistoryFillingModule } from '#history/history-filling.module.js';
import { StatisticsFillingModule } from '#statistics/statistics-filling.module.js';
import { PhoneNormalizationModule } from '#customers/phone-normalization.module.js';
import { ImportDispatchModule } from '#imports/import-dispatch.module.js';
import { MessageDispatchModule } from '#messages/message-dispatch.module.js';
import { TransparencyLogModule } from '#transparency/transparency-log.module.js';
import { PassDispatchModule } from '#passes/pass-dispatch.module.js';
import { DispatchModule } from '#dispatch/dispatch.module.js';
import { WebPushSendingModule } from '#web-card/web-push.module.js';
import { WebPushes } from '#web-card/web-pushes.service.js';
import { GoogleClassSender } from '#google-wallet/google-class.sender.js';
import { GoogleObjectSender } from '#google-wallet/google-object.sender.js';
import { GoogleSendingModule } from '#google-wallet/google-wallet.module.js';
import { ApplePushes } from '#apple-wallet/apple-pushes.service.js';
import { ApplePushModule } from '#apple-wallet/apple-wallet.module.js';
import { AnnouncementDispatchModule } from '#announcements/announcement-dispatch.module.js';
import { GeocodingModule } from '#geocoding/geocoding.module.js';
import { customerSubjects } from '#stamping/customer-subjects.js';
import { plainTables, readModels } from '../../read-models.js';
import { migrations } from '../../schema/migrations.js';

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
        AnnouncementDispatchModule.forRoot(passes),
      ],
      providers: [AddressUpkeep, BackupMetrics, DatabaseWarnings, Readiness],
    };
  }
}
