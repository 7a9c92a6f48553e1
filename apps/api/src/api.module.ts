import { randomBytes } from 'node:crypto';
import { Module, type DynamicModule } from '@nestjs/common';
import type { Config } from '#configuration/config.js';
import { REQUEST_LIMITS } from '#database/data-source.js';
import { DatabaseModule } from '#database/database.module.js';
import { EventStoreModule } from '#event-store/event-store.module.js';
import { HttpModule } from '#http/http.module.js';
import { DatabaseWarnings } from '#operations/database-warnings.js';
import { HealthController } from '#operations/health.controller.js';
import { ReplicaWarning } from '#operations/replica-warning.js';
import { Readiness } from '#operations/readiness.js';
import { IdentityModule } from '#identity/identity.module.js';
import { CardsModule } from '#cards/cards.module.js';
import { RewardsModule } from '#rewards/rewards.module.js';
import { StampingModule } from '#stamping/stamping.module.js';
import { CustomersModule } from '#customers/customers.module.js';
import { LocationsModule } from '#locations/locations.module.js';
import { PostersModule } from '#posters/posters.module.js';
import { AccountsModule } from '#accounts/accounts.module.js';
import { LogosModule } from '#accounts/logos.module.js';
import { ImportsModule } from '#imports/imports.module.js';
import { TransparencyModule } from '#transparency/transparency.module.js';
import { HistoryModule } from '#history/history.module.js';
import { ExportsModule } from '#exports/exports.module.js';
import { StatisticsModule } from '#statistics/statistics.module.js';
import { SubscriptionsModule } from '#subscriptions/subscriptions.module.js';
import { WalletStateModule } from '#passes/wallet-state.module.js';
import { AnnouncementsModule } from '#announcements/announcements.module.js';
import { PublicImagesModule } from '#card-images/strip-images.module.js';
import { PagesModule } from '#pages/pages.module.js';
import { SignInModule } from '#sign-in/sign-in.module.js';
import { AdminApiModule } from '#admin-api/admin-api.module.js';
import { CounterModule } from '#counter/counter.module.js';
import { ConsoleModule } from '#console/console.module.js';
import { WebCardModule } from '#web-card/web-card.module.js';
import { PosterPagesModule } from '#poster-pages/poster-pages.module.js';
import { SignupModule } from '#signup/signup.module.js';
import { GoogleWalletModule } from '#google-wallet/google-wallet.module.js';
import { AppleWalletModule } from '#apple-wallet/apple-wallet.module.js';
import { McpModule } from '#mcp/mcp.module.js';
import { customerSubjects } from '#stamping/customer-subjects.js';
import { plainTables, readModels } from '../../read-models.js';
import { migrations } from '../../schema/migrations.js';

@Module({})
export class ApiModule {
  static forRoot(config: Config): DynamicModule {
    return {
      module: ApiModule,
      imports: [
        // Each process has a name of its own, by which ReplicaWarning tells the api processes apart.
        DatabaseModule.forRoot(
          config,
          `api ${randomBytes(4).toString('hex')}`,
          REQUEST_LIMITS,
          migrations,
        ),
        EventStoreModule.forRoot({
          readModels,
          plainTables,
          subjects: customerSubjects,
        }),
        HttpModule,
        IdentityModule,
        AccountsModule,
        LogosModule,
        HistoryModule,
        ExportsModule,
        StatisticsModule,
        CardsModule,
        RewardsModule,
        StampingModule,
        CustomersModule,
        LocationsModule,
        PostersModule,
        ImportsModule,
        TransparencyModule,
        SubscriptionsModule,
        WalletStateModule,
        AnnouncementsModule,
        PublicImagesModule,
        PagesModule,
        SignInModule,
        AdminApiModule,
        CounterModule,
        ConsoleModule,
        WebCardModule,
        PosterPagesModule,
        SignupModule,
        GoogleWalletModule,
        AppleWalletModule,
        McpModule,
      ],
      controllers: [HealthController],
      providers: [DatabaseWarnings, Readiness, ReplicaWarning],
    };
  }
}
