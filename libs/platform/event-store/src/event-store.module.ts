import { Global, Module, type DynamicModule, type Provider } from '@nestjs/common';
import pg from 'pg';
import { Registry } from 'prom-client';
import type { DomainEvent } from '#kernel/aggregate.js';
import { PlatformConfig } from '#kernel/platform-config.js';
import { AsOf } from './log/as-of.service.js';
import { openEventStore } from './port/engine.js';
import { EventStore } from './port/event-store.js';
import { EventTypes } from './port/event-types.js';
import { ErasureWatch } from './personal-keys/erasure-watch.service.js';
import { CommandPipeline } from './commands/handle-command.js';
import { KnownErasures } from './personal-keys/known-erasures.js';
import { LogTimes } from './log/log-times.service.js';
import { LogTimesFollower } from './log/log-times.subscription.js';
import { StoredResponses } from './commands/stored-responses.js';
import { PastCounts } from './log/past-counts.service.js';
import { PersonalKeys } from './personal-keys/personal-keys.js';
import { Subjects } from './personal-keys/personal-parts.js';
import { PipelineMetrics } from './commands/pipeline-metrics.js';
import { PlainWrites } from './commands/audited-writes.service.js';
import { Redecisions } from './commands/redecisions.js';
import { RepeatedAudits } from './commands/repeated-audits.service.js';
import { RowCatchUp } from './read-models/read-model-catch-up.subscription.js';
import { RowRefold } from './read-models/reprojection.service.js';
import { Rows, type PlainTable, type RowTable } from './read-models/read-models.js';
import { SeveralStreams } from './commands/several-streams.js';
import { StartCheck } from './log/start-check.js';

type AnyTable = RowTable<{ accountId: number }, DomainEvent>;

/**
 * What the contexts above tell the event store.
 * @property rowTables of every aggregate: their streams are the ones that are read, their event types the known ones
 */
type Contexts = { rowTables: AnyTable[]; plainTables: PlainTable[]; subjects: Subjects };

@Global()
@Module({})
export class EventStoreModule {
  static forRoot({ rowTables, plainTables, subjects }: Contexts): DynamicModule {
    return {
      module: EventStoreModule,
      providers: [
        ...providersOver(rowTables, plainTables),
        StoredResponses,
        { provide: Subjects, useValue: subjects },
        PersonalKeys,
        {
          provide: KnownErasures,
          inject: [PersonalKeys],
          useFactory: ({ erasures }: PersonalKeys) => erasures,
        },
        ErasureWatch,
        LogTimes,
        LogTimesFollower,
        PastCounts,
        Rows,
        PipelineMetrics,
        CommandPipeline,
        SeveralStreams,
        PlainWrites,
        RepeatedAudits,
      ],
      exports: [
        EventStore,
        EventTypes,
        StoredResponses,
        PersonalKeys,
        KnownErasures,
        ErasureWatch,
        RowCatchUp,
        LogTimes,
        LogTimesFollower,
        AsOf,
        PastCounts,
        RowRefold,
        StartCheck,
        Rows,
        CommandPipeline,
        SeveralStreams,
        PlainWrites,
        RepeatedAudits,
      ],
    };
  }
}

/** What works on the streams or rows of every aggregate. */
function providersOver(rowTables: AnyTable[], plainTables: PlainTable[]): Provider[] {
  return [
    {
      provide: EventStore,
      inject: [pg.Pool, PersonalKeys, PlatformConfig],
      useFactory: (pool: pg.Pool, keys: PersonalKeys, config: PlatformConfig) =>
        openEventStore(pool, keys, config, rowTables, plainTables),
    },
    {
      provide: RowCatchUp,
      inject: [pg.Pool, EventStore, Rows],
      useFactory: (pool: pg.Pool, store: EventStore, rows: Rows) =>
        new RowCatchUp(pool, store, rows, rowTables),
    },
    {
      provide: RowRefold,
      inject: [pg.Pool, EventStore, PersonalKeys, Registry],
      useFactory: (pool: pg.Pool, store: EventStore, keys: PersonalKeys, registry: Registry) =>
        new RowRefold(pool, store, keys, rowTables, registry),
    },
    {
      provide: StartCheck,
      inject: [pg.Pool, EventStore],
      useFactory: (pool: pg.Pool, store: EventStore) =>
        new StartCheck(pool, store, rowTables, plainTables),
    },
    {
      provide: EventTypes,
      useValue: new EventTypes(rowTables.map(({ aggregate }) => aggregate)),
    },
    {
      provide: Redecisions,
      inject: [EventStore, Rows, PersonalKeys],
      useFactory: (store: EventStore, rows: Rows, keys: PersonalKeys) =>
        new Redecisions(store, rows, keys, rowTables),
    },
    {
      provide: AsOf,
      inject: [EventStore, LogTimes, PersonalKeys],
      useFactory: (store: EventStore, times: LogTimes, keys: PersonalKeys) =>
        new AsOf(store, times, keys, rowTables),
    },
  ];
}
