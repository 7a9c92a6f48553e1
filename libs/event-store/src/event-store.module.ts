import { Global, Module } from '@nestjs/common';
import { EventStore } from './event-store.js';
import { CommandPipeline } from './handle-command.js';
import { PersonalKeys } from './personal-keys.js';
import { PostgresEventStore } from './postgres-event-store.js';
import { Rows } from './rows.js';

@Global()
@Module({
  providers: [
    { provide: EventStore, useClass: PostgresEventStore },
    PersonalKeys,
    Rows,
    CommandPipeline,
  ],
  exports: [EventStore, PersonalKeys, Rows, CommandPipeline],
})
export class EventStoreModule {}
