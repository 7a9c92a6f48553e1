import { Global, Module, type DynamicModule, type Provider } from '@nestjs/common';
import pg from 'pg';
import { Registry } from 'prom-client';
import type { DatabasePool } from '#database/database-pool.js';
import { ProcessLink } from '#database/process-link.js';
import { ProcessSession } from '#database/process-session.js';
import { PlatformConfig } from '#kernel/platform-config.js';
import { DamageMetrics } from './log/damage-metrics.js';
import { PastStates } from './log/past-states.service.js';
import { openEventStore } from './engine.js';
import { EventStore } from './port/event-store.js';
import { EventTypes } from './port/event-types.js';
import { ErasureWatch } from './personal-keys/erasure-watch.service.js';
import { CapOverrides } from './commands/cap-overrides.service.js';
import { CommandPipeline } from './commands/handle-command.js';
import { KnownErasures } from './personal-keys/known-erasures.js';
import { Followers } from './log/followers.service.js';
import { LogTimes } from './log/log-times.service.js';
import { StoredResponses } from './commands/stored-responses.js';
import { PastCounts } from './log/past-counts.service.js';
import { PersonalKeys } from './personal-keys/personal-keys.js';
import { Subjects } from './personal-keys/personal-parts.js';
import { PipelineMetrics } from './commands/pipeline-metrics.js';
import { AuditedWrites } from './commands/audited-writes.service.js';
import { StreamCallbacks } from './commands/stream-callbacks.js';
import { RepeatedAudits } from './commands/repeated-audits.service.js';
import { Reprojection } from './read-models/reprojection.service.js';
import { ReadModels, type PlainTable, type AnyReadModel } from './read-models/read-models.js';
import { MultiStreamCommands } from './commands/multi-stream-commands.js';
import { StartCheck } from './log/start-check.js';

/**
 * Options that the contexts pass to the event store.
 * @property readModels of every aggregate: only their streams are read, and only their event types are known
 */
type EventStoreOptions = {
  readModels: AnyReadModel[];
  plainTables: PlainTable[];
  subjects: Subjects;
};

@Global()
@Module({})
export class EventStoreModule {
  static forRoot({ readModels, plainTables, subjects }: EventStoreOptions): DynamicModule {
    return {
      module: EventStoreModule,
      providers: [
        ...createProviders(readModels, plainTables),
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
        Followers,
        PastCounts,
        ReadModels,
        PipelineMetrics,
        DamageMetrics,
        CommandPipeline,
        MultiStreamCommands,
        AuditedWrites,
        RepeatedAudits,
        CapOverrides,
      ],
      exports: [
        EventStore,
        EventTypes,
        StoredResponses,
        PersonalKeys,
        KnownErasures,
        ErasureWatch,
        LogTimes,
        Followers,
        PastStates,
        PastCounts,
        Reprojection,
        StartCheck,
        ReadModels,
        CommandPipeline,
        MultiStreamCommands,
        AuditedWrites,
        RepeatedAudits,
        CapOverrides,
      ],
    };
  }
}

/** Creates the providers that work on the streams or read models of every aggregate. */
function createProviders(allReadModels: AnyReadModel[], plainTables: PlainTable[]): Provider[] {
  return [
    {
      provide: EventStore,
      inject: [pg.Pool, PersonalKeys, PlatformConfig, ProcessSession, ProcessLink],
      useFactory: (
        pool: DatabasePool,
        keys: PersonalKeys,
        config: PlatformConfig,
        session: ProcessSession,
        link: ProcessLink,
      ) => openEventStore(pool, keys, config, allReadModels, plainTables, session, link),
    },
    {
      provide: Reprojection,
      inject: [pg.Pool, EventStore, PersonalKeys, Registry],
      useFactory: (pool: pg.Pool, eventStore: EventStore, keys: PersonalKeys, registry: Registry) =>
        new Reprojection(pool, eventStore, keys, allReadModels, registry),
    },
    {
      provide: StartCheck,
      inject: [pg.Pool, EventStore],
      useFactory: (pool: pg.Pool, eventStore: EventStore) =>
        new StartCheck(pool, eventStore, allReadModels, plainTables),
    },
    {
      provide: EventTypes,
      useValue: new EventTypes(allReadModels.map(({ aggregate }) => aggregate)),
    },
    {
      provide: StreamCallbacks,
      inject: [EventStore, ReadModels, PersonalKeys],
      useFactory: (eventStore: EventStore, readModels: ReadModels, keys: PersonalKeys) =>
        new StreamCallbacks(eventStore, readModels, keys, allReadModels),
    },
    {
      provide: PastStates,
      inject: [EventStore, LogTimes, PersonalKeys],
      useFactory: (eventStore: EventStore, times: LogTimes, keys: PersonalKeys) =>
        new PastStates(eventStore, times, keys, allReadModels),
    },
  ];
}
