import { Logger } from '@nestjs/common';
import { Pool } from 'pg';
import type { DomainEvent } from '#kernel/aggregate.js';
import { messageOf } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { isDatabaseUnavailable } from '#database/connection.js';
import { isRolledBackForRetry } from '#database/sqlstate.js';
import { checkpointOf } from './checkpoint.js';
import type { EventStore, Position, StoredEvent } from './event-store.js';
import { formatPosition } from './position.js';
import type { Rows, RowTable } from './rows.js';

export const ROWS_SUBSCRIPTION = 'rows';
const BATCH = 500;
const AGAIN_MS = 1_000;

type AnyTable = RowTable<{ accountId: number }, DomainEvent>;

/**
 * Where rows may lag behind their streams: reads the log and writes each row whose writer died before it
 * could. The writer is nearly always first, so this mostly finds nothing to do.
 */
export class RowCatchUp {
  private readonly log = new Logger('row catch-up');

  constructor(
    private readonly pool: Pool,
    private readonly store: EventStore,
    private readonly rows: Rows,
    private readonly tables: AnyTable[],
  ) {}

  /** Until the signal aborts. Several processes may run it: rows only ever move forward. */
  async run(signal: AbortSignal): Promise<void> {
    if (!this.store.rowsMayLag) return;
    while (!signal.aborted) {
      try {
        await this.store.subscribe({
          after: await checkpointOf(this.pool, ROWS_SUBSCRIPTION),
          batch: BATCH,
          signal,
          onEvents: async (events, position) => {
            await this.bringUp(events);
            await this.save(position);
          },
        });
      } catch (error) {
        this.log.warn(`failed, trying again in a second: ${messageOf(error)}`);
        await pause(AGAIN_MS, signal);
      }
    }
  }

  private async bringUp(events: StoredEvent[]): Promise<void> {
    const newest = new Map<string, number>();
    for (const { stream, revision } of events) newest.set(stream, revision);
    for (const rows of this.tables) {
      const wanted = [...newest].flatMap(([stream, revision]) => {
        const id = idIn(stream, rows);
        return id === undefined ? [] : [{ id, revision }];
      });
      if (wanted.length === 0) continue;
      const behind = await this.pool.query<{ id: number }>({
        name: `catch_up_${rows.table}`,
        text: `select w.id from unnest($1::bigint[], $2::bigint[]) as w (id, revision)
               where not exists (
                 select from ${rows.table} r where r.id = w.id and r.revision >= w.revision)`,
        values: [wanted.map(({ id }) => id), wanted.map(({ revision }) => revision)],
      });
      for (const { id } of behind.rows) await this.bringUpOne(rows, id);
    }
  }

  /** A stream that cannot be folded must not block the others; loading it reports the error too. */
  private async bringUpOne(rows: AnyTable, id: number): Promise<void> {
    try {
      await this.rows.load(rows, id, true);
    } catch (error) {
      if (isDatabaseUnavailable(error) || isRolledBackForRetry(error)) throw error;
      this.log.error(`${rows.table} ${id} stays behind its stream: ${String(error)}`);
    }
  }

  private async save(position: Position): Promise<void> {
    await this.pool.query(
      `insert into es.checkpoints (subscription, position) values ($1, $2)
       on conflict (subscription) do update
         set position = excluded.position, updated_at = now()
         where es.checkpoints.position < excluded.position`,
      [ROWS_SUBSCRIPTION, formatPosition(position)],
    );
  }
}

function idIn(stream: string, { aggregate }: AnyTable): number | undefined {
  const prefix = `${aggregate.name}-`;
  return stream.startsWith(prefix) ? Number(stream.slice(prefix.length)) : undefined;
}
