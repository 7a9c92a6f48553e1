import { Module } from '@nestjs/common';
import { CardsModule } from '#loyalty/cards/cards.module.js';
import { CustomersModule } from '#loyalty/customers/customers.module.js';
import { HistoryModule } from '#loyalty/history/history.module.js';
import { LocationsModule } from '#loyalty/locations/locations.module.js';
import { SignInModule } from '#web/sign-in/sign-in.module.js';
import { StampingModule } from '#loyalty/stamping/stamping.module.js';
import { CounterController } from './counter.controller.js';
import { CounterCustomersController } from './counter-customers.controller.js';
import { CounterFilesController } from './counter-files.controller.js';
import { CounterLocationController } from './counter-location.controller.js';
import { CounterLocations } from './counter-locations.service.js';
import { CounterPeopleController } from './counter-people.controller.js';
import { CounterPages } from './counter-pages.service.js';
import { CounterService } from './counter.service.js';
import { RecentActions } from './recent-actions.service.js';
import { PinController } from './pin.controller.js';

/** Serves the counter, where staff scan, stamp and redeem. */
@Module({
  imports: [
    CardsModule,
    CustomersModule,
    HistoryModule,
    LocationsModule,
    SignInModule,
    StampingModule,
  ],
  controllers: [
    CounterFilesController,
    CounterController,
    CounterCustomersController,
    CounterLocationController,
    CounterPeopleController,
    PinController,
  ],
  providers: [CounterLocations, CounterPages, CounterService, RecentActions],
})
export class CounterModule {}
