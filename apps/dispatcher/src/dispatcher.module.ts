import { Module, type DynamicModule } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { Config } from '#kernel/config.js';
import { DatabaseModule } from '#database/database.module.js';
import { EventStore } from '#event-store/event-store.js';
import { EventStoreModule } from '#event-store/event-store.module.js';
import { RowCatchUp } from '#event-store/row-catch-up.subscription.js';
import { Rows } from '#event-store/rows.js';
import { Readiness } from '#operations/readiness.js';
import { MessagesModule } from '#messages/messages.module.js';
import { DispatchModule } from '#dispatch/dispatch.module.js';
import { rowTables } from '../../row-tables.js';

@Module({})
export class DispatcherModule {
  static forRoot(config: Config): DynamicModule {
    return {
      module: DispatcherModule,
      imports: [
        DatabaseModule.forRoot(config, 'dispatcher'),
        EventStoreModule,
        MessagesModule,
        DispatchModule,
      ],
      providers: [
        Readiness,
        {
          provide: RowCatchUp,
          inject: [DataSource, EventStore, Rows],
          useFactory: (source: DataSource, store: EventStore, rows: Rows) =>
            new RowCatchUp(source, store, rows, rowTables),
        },
      ],
    };
  }
}
