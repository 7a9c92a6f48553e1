import { Batcher, type BatchSlots } from '#platform/database/batcher.js';
import { isDatabaseUnavailable, queryForGroup } from '#platform/database/connection.js';
import type { DatabasePool } from '#platform/database/database-pool.js';
import { toReadModelArguments, type ReadModelUpdate } from '../postgres/commit-arguments.js';

/**
 * Does not wait for the disk: the catch-up writes again what PostgreSQL loses in a crash. Not for read models that a
 * catch-up writes itself.
 */
const WRITE_SOON = {
  name: 'es_write_rows_soon',
  text: `select set_config('synchronous_commit', 'off', true), es.write_read_models($1, $2, $3)`,
};

/** Writes the read models of commits that are already appended. */
export class ReadModelWriter {
  private readonly batches: Batcher<ReadModelUpdate, void>;

  constructor(
    private readonly pool: DatabasePool,
    slots: BatchSlots,
  ) {
    this.batches = new Batcher(slots, 64, (group) => this.writeTogetherOrEach(group));
  }

  write(update: ReadModelUpdate): Promise<void> {
    return this.batches.add(update);
  }

  /**
   * Writes read models together, or each alone when that fails: one that cannot be written must not hold up the others.
   */
  private async writeTogetherOrEach(
    updates: ReadModelUpdate[],
  ): Promise<PromiseSettledResult<void>[]> {
    const [result] = await Promise.allSettled([this.writeTogether(updates)]);
    const isDone = result.status === 'fulfilled' || isDatabaseUnavailable(result.reason);
    if (isDone || updates.length === 1) return updates.map(() => result);
    const results: PromiseSettledResult<void>[] = [];
    for (const update of updates)
      results.push(...(await Promise.allSettled([this.writeTogether([update])])));
    return results;
  }

  private async writeTogether(updates: ReadModelUpdate[]): Promise<void> {
    // One row of a stream is enough, and one statement may not write a row twice.
    const latestByStream = new Map<string, ReadModelUpdate>();
    for (const update of updates) {
      const latest = latestByStream.get(update.stream);
      if (!latest || latest.head.revision < update.head.revision)
        latestByStream.set(update.stream, update);
    }
    const rows = [...latestByStream.values()].sort((a, b) => (a.stream < b.stream ? -1 : 1));
    await queryForGroup(this.pool, {
      ...WRITE_SOON,
      values: [...toReadModelArguments(rows), rows.map(({ stream }) => stream)],
    });
  }
}
