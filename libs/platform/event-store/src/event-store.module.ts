import { Global, Module } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Config } from '#kernel/config.js';
import { EventStore } from './event-store.js';
import { EventStoreDbEventStore } from './eventstoredb-event-store.js';
import { CommandPipeline } from './handle-command.js';
import { Outcomes } from './outcomes.js';
import { PersonalKeys } from './personal-keys.js';
import { PipelineMetrics } from './pipeline-metrics.js';
import { PostgresEventStore } from './postgres-event-store.js';
import { Rows } from './rows.js';

/** The one place that knows which engine runs. */
@Global()
@Module({
  providers: [
    {
      provide: EventStore,
      inject: [DataSource, Config],
      useFactory: (source: DataSource, config: Config): EventStore =>
        config.eventstoreUrl === null
          ? new PostgresEventStore(source, config)
          : new EventStoreDbEventStore(source, config),
    },
    Outcomes,
    PersonalKeys,
    Rows,
    PipelineMetrics,
    CommandPipeline,
  ],
  exports: [EventStore, Outcomes, PersonalKeys, Rows, CommandPipeline],
})
export class EventStoreModule {}
