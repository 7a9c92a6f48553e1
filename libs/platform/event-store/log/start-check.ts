import { Inject, Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { Pool } from 'pg';
import { parseStreamName, type DomainEvent } from '#platform/kernel/aggregate.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import { findMaxId, raiseSequence } from '#platform/database/ids.js';
import { READ_MODELS_SUBSCRIPTION, readPosition } from '../port/subscription-position.js';
import { EventStore } from '../port/event-store.js';
import { formatPosition } from '../port/position.js';
import { toRecorded } from '../port/codec.js';
import {
  ALL_READ_MODELS,
  describeAhead,
  PLAIN_TABLES,
  type PlainTable,
  type AnyReadModel,
} from '../read-models/read-models.js';

const BATCH = 500;
const BATCH_SIZE = 20_000;

/**
 * Checks at every start for what a restore or a failover can leave behind: positions past the end of the
 * log, and sequences below ids that are in use. What needs a log outside the database is checked once it can be read.
 */
@Injectable()
export class StartCheck implements OnModuleInit {
  private readonly log = new Logger('start check');

  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    @Inject(ALL_READ_MODELS) private readonly allReadModels: AnyReadModel[],
    @Inject(PLAIN_TABLES) private readonly plainTables: PlainTable[],
  ) {
    eventStore.startCheck = async () => {
      await this.assertNoLostEvents();
      await this.raiseSequences(await this.readIdsBeyondReadModels());
    };
  }

  async onModuleInit(): Promise<void> {
    const greatestIds = new Map<string, number>();
    for (const { table } of [...this.allReadModels, ...this.plainTables]) {
      greatestIds.set(table, await findMaxId(this.pool, table));
    }
    await this.raiseSequences(greatestIds);
  }

  /**
   * Reports read models ahead of their streams, as after restoring only some of the tables: such records cannot be
   * changed. Only on PostgreSQL: on another engine this would take hours, and an attempt to change the record reports
   * it.
   */
  async reportReadModelsAhead(signal: AbortSignal): Promise<void> {
    if (!this.eventStore.isInDatabase) return;
    for (const { table, name } of this.allReadModels) {
      for (let after: number | undefined = 0; after !== undefined && !signal.aborted;) {
        after = await this.reportBatch(table, name, after);
      }
    }
  }

  /**
   * Reports those of one batch.
   * @returns where the next batch begins; undefined: this was the last
   */
  private async reportBatch(
    table: string,
    kind: string,
    after: number,
  ): Promise<number | undefined> {
    const { rows } = await this.pool.query<{ last: number | null; ahead: number[] | null }>(
      `select max(r.id) as last,
         array_agg(r.id) filter (where (
           select e.revision from es.events e where e.stream_id = $2 || '-' || r.id and e.revision = r.revision
         ) is null) as ahead
       from (select id, revision from ${table} where id > $1 order by id limit ${BATCH_SIZE}) r`,
      [after, kind],
    );
    const [slice] = rows;
    for (const id of slice?.ahead ?? []) this.log.error(describeAhead(table, id));
    return slice?.last ?? undefined;
  }

  /**
   * Checks that the log has no less than was processed already. Not needed for PostgreSQL, where positions are
   * restored together with the events.
   * @throws ConfigError
   */
  private async assertNoLostEvents(): Promise<void> {
    const { rows } = await this.pool.query<{ subscription: string; position: string }>(
      'select subscription, position from es.positions order by 1',
    );
    // The head is read after the positions, because other processes move them meanwhile.
    const head = formatPosition(await this.eventStore.head());
    const beyond = rows.filter(({ position }) => position > head);
    if (beyond.length === 0) return;
    const names = beyond.map(({ subscription }) => subscription).join(', ');
    throw new ConfigError(
      `KurrentDB (EventStoreDB) ends before events that were already processed (${names}), as after restoring an older backup of it: restore a newer one, or restore PostgreSQL to the same time (docs/operating/back-up.md, Restore).`,
    );
  }

  private async raiseSequences(greatestIds: Map<string, number>): Promise<void> {
    for (const [table, id] of greatestIds) {
      const behind = await raiseSequence(this.pool, table, id);
      if (behind > 0)
        this.log.warn(`the ids of ${table} were behind by ${behind} and have been raised`);
    }
  }

  /** Reads the greatest ids in events that are not in read models yet. */
  private async readIdsBeyondReadModels(): Promise<Map<string, number>> {
    const greatestIds = new Map<string, number>();
    const noteId = (table: string, id: number) =>
      greatestIds.set(table, Math.max(id, greatestIds.get(table) ?? 0));
    for (let after = await readPosition(this.pool, READ_MODELS_SUBSCRIPTION); ;) {
      const events = await this.eventStore.readAll(after, BATCH);
      const last = events.at(-1);
      if (!last) return greatestIds;
      for (const event of events) {
        const { aggregate, id } = parseStreamName(event.stream);
        const readModel = this.allReadModels.find(({ name }) => name === aggregate);
        if (!readModel || !Number.isSafeInteger(id)) continue;
        noteId(readModel.table, id);
        // Ids are not personal, so personal data are left out as if they were erased.
        const data = { ...event.data, ...('personal' in event.data && { personal: null }) };
        const recordedEvent = toRecorded<DomainEvent>(readModel, { ...event, data });
        const otherIds = readModel.getOtherIds?.(recordedEvent) ?? {};
        for (const [table, id] of Object.entries(otherIds)) noteId(table, id);
      }
      after = last.position;
    }
  }
}
