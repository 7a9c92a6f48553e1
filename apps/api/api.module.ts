import { randomBytes } from 'node:crypto';
import { Module, type DynamicModule } from '@nestjs/common';
import type { Config } from '#configuration/config.js';
import { REQUEST_LIMITS } from '#platform/database/data-source.js';
import { DatabaseModule } from '#platform/database/database.module.js';
import { EventStoreModule } from '#platform/event-store/event-store.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { DatabaseWarnings } from '#platform/operations/database-warnings.js';
import { HealthController } from '#platform/operations/health.controller.js';
import { ReplicaWarning } from '#platform/operations/replica-warning.js';
import { Readiness } from '#platform/operations/readiness.js';
import { IdentityModule } from '#identity/identity.module.js';
import { CardsModule } from '#loyalty/cards/cards.module.js';
import { RewardsModule } from '#loyalty/rewards/rewards.module.js';
import { StampingModule } from '#loyalty/stamping/stamping.module.js';
import { CustomersModule } from '#loyalty/customers/customers.module.js';
import { LocationsModule } from '#loyalty/locations/locations.module.js';
import { PostersModule } from '#loyalty/posters/posters.module.js';
import { AccountsModule } from '#loyalty/accounts/accounts.module.js';
import { LogosModule } from '#loyalty/accounts/logos.module.js';
import { ImportsModule } from '#loyalty/imports/imports.module.js';
import { TransparencyModule } from '#outbound/transparency/transparency.module.js';
import { HistoryModule } from '#loyalty/history/history.module.js';
import { ExportsModule } from '#loyalty/exports/exports.module.js';
import { StatisticsModule } from '#loyalty/statistics/statistics.module.js';
import { SubscriptionsModule } from '#outbound/subscriptions/subscriptions.module.js';
import { WalletStateModule } from '#outbound/passes/wallet-state.module.js';
import { CampaignsModule } from '#outbound/campaigns/campaigns.module.js';
import { PublicImagesModule } from '#outbound/card-images/card-images.module.js';
import { PagesModule } from '#web/pages/pages.module.js';
import { SignInModule } from '#web/sign-in/sign-in.module.js';
import { AdminApiModule } from '#web/admin-api/admin-api.module.js';
import { CounterModule } from '#web/counter/counter.module.js';
import { ConsoleModule } from '#web/console/console.module.js';
import { WebCardModule } from '#web/web-card/web-card.module.js';
import { PosterPagesModule } from '#web/poster-pages/poster-pages.module.js';
import { SignupModule } from '#web/signup/signup.module.js';
import { GoogleWalletModule } from '#outbound/google-wallet/google-wallet.module.js';
import { AppleWalletModule } from '#outbound/apple-wallet/apple-wallet.module.js';
import { McpModule } from '#web/mcp/mcp.module.js';
import { customerSubjects } from '#loyalty/stamping/customer-subjects.js';
import { plainTables, readModels } from '../read-models.js';
import { migrations } from '../schema/migrations.js';

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
        CampaignsModule,
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
