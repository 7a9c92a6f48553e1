import { Module } from '@nestjs/common';
import { loadPart } from '#kernel/templates.js';
import { CardsModule } from '#cards/cards.module.js';
import { CustomersModule } from '#customers/customers.module.js';
import { AuditModule } from '#history/audit.module.js';
import { HistoryModule } from '#history/history.module.js';
import { LocationsModule } from '#locations/locations.module.js';
import { RewardsModule } from '#rewards/rewards.module.js';
import { StampingModule } from '#stamping/stamping.module.js';
import { CorrectionPagesController } from './correction-pages.controller.js';
import { CustomerListController } from './customer-list.controller.js';
import { CustomerPageController } from './customer-page.controller.js';
import { CustomerView } from './customer-view.service.js';
import { HistoryPageController } from './history-page.controller.js';
import { MergePagesController } from './merge-pages.controller.js';
import { Timeline } from './timeline.service.js';

loadPart('timeline', import.meta.url, './views/timeline.eta');

/** Serves the customers and the history of a store in the console. */
@Module({
  imports: [
    AuditModule,
    CardsModule,
    CustomersModule,
    HistoryModule,
    LocationsModule,
    RewardsModule,
    StampingModule,
  ],
  controllers: [
    CustomerListController,
    CustomerPageController,
    CorrectionPagesController,
    MergePagesController,
    HistoryPageController,
  ],
  providers: [CustomerView, Timeline],
})
export class CustomerPagesModule {}
