import type pg from 'pg';
import { Batcher, type Lanes } from '#database/batcher.js';
import { isDatabaseUnavailable } from '#database/connection.js';
import { rowArguments, type PlacedRow } from '../postgres/commit-arguments.js';

/**
 * What PostgreSQL loses of it in a crash, the catch-up writes again from the streams: so it need not wait for the disk. Not
 * for rows that a catch-up writes itself.
 */
const WRITE_SOON = {
  name: 'es_write_rows_soon',
  text: `select set_config('synchronous_commit', 'off', true), es.write_read_models($1, $2, $3)`,
};

/** Writes rows of commits that are already appended. */
export class RowWriter {
  private readonly batches: Batcher<PlacedRow, void>;

  constructor(
    private readonly pool: pg.Pool,
    lane: Lanes,
  ) {
    this.batches = new Batcher(lane, 64, (group) => this.writeTogetherOrEach(group));
  }

  write(placed: PlacedRow): Promise<void> {
    return this.batches.add(placed);
  }

  /** A row that cannot be written must not hold up those that share its statement. */
  private async writeTogetherOrEach(placed: PlacedRow[]): Promise<PromiseSettledResult<void>[]> {
    const [together] = await Promise.allSettled([this.writeTogether(placed)]);
    const isDone = together.status === 'fulfilled' || isDatabaseUnavailable(together.reason);
    if (isDone || placed.length === 1) return placed.map(() => together);
    const each: PromiseSettledResult<void>[] = [];
    for (const one of placed) each.push(...(await Promise.allSettled([this.writeTogether([one])])));
    return each;
  }

  private async writeTogether(placed: PlacedRow[]): Promise<void> {
    // One row of a stream is enough, and one statement may not write a row twice.
    const newest = new Map<string, PlacedRow>();
    for (const one of placed) {
      const known = newest.get(one.stream);
      if (!known || known.head.revision < one.head.revision) newest.set(one.stream, one);
    }
    const rows = [...newest.values()].sort((a, b) => (a.stream < b.stream ? -1 : 1));
    await this.pool.query({
      ...WRITE_SOON,
      values: [...rowArguments(rows), rows.map(({ stream }) => stream)],
    });
  }
}
