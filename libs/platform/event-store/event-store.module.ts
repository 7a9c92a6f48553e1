import { Global, Module, type DynamicModule } from '@nestjs/common';
import pg from 'pg';
import type { DatabasePool } from '#platform/database/database-pool.js';
import { ProcessLink } from '#platform/database/process-link.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { PlatformConfig } from '#platform/kernel/platform-config.js';
import { DamageMetrics } from './log/damage-metrics.js';
import { PastStates } from './log/past-states.service.js';
import { openEventStore } from './engine.js';
import { EventStore } from './port/event-store.js';
import { EventTypes } from './port/event-types.js';
import { ErasureWatch } from './personal-keys/erasure-watch.service.js';
import { AccountOwners } from './commands/account-owners.service.js';
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
import {
  ALL_READ_MODELS,
  PLAIN_TABLES,
  ReadModels,
  type PlainTable,
  type AnyReadModel,
} from './read-models/read-models.js';
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

const SERVICES = [
  Reprojection,
  StartCheck,
  PastStates,
  StoredResponses,
  PersonalKeys,
  ErasureWatch,
  LogTimes,
  Followers,
  PastCounts,
  ReadModels,
  CommandPipeline,
  MultiStreamCommands,
  AuditedWrites,
  RepeatedAudits,
  CapOverrides,
  AccountOwners,
];

@Global()
@Module({})
export class EventStoreModule {
  static forRoot({ readModels, plainTables, subjects }: EventStoreOptions): DynamicModule {
    return {
      module: EventStoreModule,
      providers: [
        { provide: ALL_READ_MODELS, useValue: readModels },
        { provide: PLAIN_TABLES, useValue: plainTables },
        {
          provide: EventStore,
          inject: [pg.Pool, PersonalKeys, PlatformConfig, ProcessSession, ProcessLink],
          useFactory: (
            pool: DatabasePool,
            keys: PersonalKeys,
            config: PlatformConfig,
            session: ProcessSession,
            link: ProcessLink,
          ) => openEventStore(pool, keys, config, readModels, plainTables, session, link),
        },
        {
          provide: EventTypes,
          useValue: new EventTypes(readModels),
        },
        { provide: Subjects, useValue: subjects },
        {
          provide: KnownErasures,
          inject: [PersonalKeys],
          useFactory: ({ erasures }: PersonalKeys) => erasures,
        },
        PipelineMetrics,
        DamageMetrics,
        StreamCallbacks,
        ...SERVICES,
      ],
      exports: [EventStore, EventTypes, KnownErasures, ...SERVICES],
    };
  }
}
