import { Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Gauge, Registry } from 'prom-client';
import { messageOf } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { rowArguments, type PlacedRow } from '../postgres/commit-arguments.js';
import type { EventStore } from '../port/event-store.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';
import { streamOf } from './read-models.js';
import { follow, newProgress, placedRow, type AnyTable } from '../verification/stream-progress.js';

const BATCH = 100;
/** Between two batches, so that the work of commands comes first. */
const PAUSE_MS = 200;
/** Processes of the version before write rows of the older fold until they are gone. */
const AGAIN_MS = 10 * 60_000;
/** Rows that could not be folded are passed over, up to this many in a round. */
const MOST_FAILED = 1_000;

type OldRow = { id: number; revision: number };

/**
 * Folds rows anew that an older fold made. Commands do that for the rows that they load, but lists and searches read
 * rows as they are. Several processes may do it at once: rows only ever move forward.
 */
export class RowRefold {
  private readonly log = new Logger('row refold');
  private readonly left: Gauge<'table'>;

  constructor(
    private readonly pool: Pool,
    private readonly store: EventStore,
    private readonly keys: PersonalKeys,
    private readonly tables: AnyTable[],
    registry: Registry,
  ) {
    this.left = new Gauge({
      name: 'inkpad_rows_of_older_fold',
      help: 'Rows that an older version made and that are still to be folded anew, by table',
      labelNames: ['table'],
      registers: [registry],
    });
  }

  /** Until the signal aborts: a look at each table at the start, and one every ten minutes. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      for (const rows of this.tables) {
        try {
          await this.refold(rows, signal);
        } catch (error) {
          this.log.warn(`${rows.table} is folded anew later: ${messageOf(error)}`);
        }
      }
      await pause(AGAIN_MS, signal);
    }
  }

  private async refold(rows: AnyTable, signal: AbortSignal): Promise<void> {
    const { table } = rows;
    const before = await this.countOf(rows);
    this.left.set({ table }, before);
    if (before === 0) return;
    const failed = new Set<number>();
    for (let done = 0; !signal.aborted && failed.size < MOST_FAILED;) {
      const old = await this.next(rows, [...failed]);
      if (old.length === 0) break;
      const folded = await this.foldAll(rows, old, failed);
      await this.write(folded);
      done += old.length;
      this.left.set({ table }, Math.max(failed.size, before - done));
      await pause(PAUSE_MS, signal);
    }
    this.left.set({ table }, await this.countOf(rows));
    if (!signal.aborted) this.log.log(`${before - failed.size} rows of ${table} were folded anew`);
  }

  private async countOf({ table, aggregate }: AnyTable): Promise<number> {
    const { rows } = await this.pool.query<{ n: number }>({
      name: `refold_count_${table}`,
      text: `select count(*) as n from ${table} where projection_version < $1`,
      values: [aggregate.foldVersion],
    });
    return rows[0]?.n ?? 0;
  }

  private async next({ table, aggregate }: AnyTable, failed: number[]): Promise<OldRow[]> {
    const { rows } = await this.pool.query<OldRow>({
      name: `refold_next_${table}`,
      text: `select id, revision from ${table}
             where projection_version < $1 and id <> all ($2::bigint[]) limit ${BATCH}`,
      values: [aggregate.foldVersion, failed],
    });
    return rows;
  }

  /** A row is folded up to its own revision: whatever moves it on is a command of today, which folds it anew as well. */
  private async foldAll(rows: AnyTable, old: OldRow[], failed: Set<number>): Promise<PlacedRow[]> {
    const all = new Map(
      old.map(({ id }) => {
        const stream = streamOf(rows.aggregate, id);
        return [stream, newProgress(rows, stream, id)];
      }),
    );
    const wanted = old.map(({ id, revision }) => ({
      stream: streamOf(rows.aggregate, id),
      to: revision,
    }));
    for await (const events of this.store.readStreams(wanted)) {
      const opened = await this.keys.opened(events);
      events.forEach((event, i) => {
        const progress = all.get(event.stream);
        if (progress && !failed.has(progress.id)) {
          const fault = faultOf(() => follow(progress, event, opened[i] ?? event, this.keys));
          if (fault !== undefined) this.failed(rows, progress.id, failed, fault);
        }
      });
    }
    return old.flatMap(({ id, revision }) => {
      const progress = all.get(streamOf(rows.aggregate, id));
      if (!progress || failed.has(id)) return [];
      const placed = placedRow(progress);
      if (placed?.head.revision === revision) return [placed];
      this.failed(rows, id, failed, 'the row is ahead of its stream');
      return [];
    });
  }

  private failed({ table }: AnyTable, id: number, failed: Set<number>, why: string): void {
    failed.add(id);
    this.log.error(`${table} ${id} stays as an older fold made it: ${why}`);
  }

  private async write(placed: PlacedRow[]): Promise<void> {
    if (placed.length === 0) return;
    const sorted = placed.toSorted((a, b) => a.row.id - b.row.id);
    await this.pool.query({
      name: 'es_write_rows',
      text: 'select es.write_read_models($1, $2, $3)',
      values: [...rowArguments(sorted), sorted.map(({ stream }) => stream)],
    });
  }
}

function faultOf(work: () => void): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
