import { Pool } from 'pg';
import { renderDigests, type HourDigest } from './hour-rows.js';
import { removeUnusedHours } from './store-recount.service.js';
import { StoreRecounts } from './store-recounts.service.js';

/** Limits the output. */
const MAX_ERRORS = 100;

/**
 * One statement, so that counts and progress are of one moment. A digest for each hour, because a large store has very many
 * cards, locations and users. Entries of a store that waits to be counted anew are not counted.
 */
const STORED_COUNTS = `
  select a.id, coalesce(s.time_zone, a.time_zone) as time_zone,
    case when s.recount_at is null then greatest(s.seq, (select seq from statistics_progress), -1) else s.seq end as seq,
    coalesce((
      select jsonb_agg(jsonb_build_object('day', h.day, 'hour', h.hour, 'digest', h.digest)) from (
        ${renderDigests('statistics_hours x where x.account_id = a.id and x.generation = coalesce(s.generation, 0)')}
      ) h), '[]') as hours
  from accounts a left join statistics_stores s on s.account_id = a.id
  where a.id > $1 order by a.id limit 1`;

type StoredCounts = { id: number; time_zone: string; seq: number; hours: HourDigest[] };

export type VerifiedStatistics = { stores: number; errors: string[] };

/** Compares the statistics of each store with what the history says, while both change. */
export class StatisticsVerification {
  /** @param recounts counts anew: tests stop it in between */
  constructor(
    private readonly pool: Pool,
    private readonly recounts = new StoreRecounts(pool),
  ) {}

  /** @param repair whether to replace the counts of stores with differences */
  async verify(repair: boolean): Promise<VerifiedStatistics> {
    const verified: VerifiedStatistics = { stores: 0, errors: [] };
    for (let after = 0; ;) {
      const { rows } = await this.pool.query<StoredCounts>(STORED_COUNTS, [after]);
      const [store] = rows;
      if (!store) return verified;
      after = store.id;
      verified.stores++;
      const errors = await this.verifyStore(store, repair);
      verified.errors.push(...errors.slice(0, Math.max(0, MAX_ERRORS - verified.errors.length)));
    }
  }

  private async verifyStore(store: StoredCounts, repair: boolean): Promise<string[]> {
    const { id: accountId, time_zone: timeZone, seq: upTo } = store;
    const recount = this.recounts.create({ accountId, timeZone, upTo });
    while (await recount.countNext());
    const errors = findDifferences(store, await recount.readDigests());
    if (errors.length > 0 && repair) await recount.publish();
    else await recount.discard();
    while (await removeUnusedHours(this.pool));
    return errors;
  }
}

function findDifferences({ id, hours }: StoredCounts, expected: HourDigest[]): string[] {
  const toKey = ({ day, hour }: HourDigest) => `${day}, hour ${hour}`;
  const digests = new Map(hours.map((hour) => [toKey(hour), hour.digest]));
  const differences = new Set<string>();
  for (const hour of expected) {
    const key = toKey(hour);
    if (digests.get(key) !== hour.digest) differences.add(key);
    digests.delete(key);
  }
  for (const key of digests.keys()) differences.add(key);
  return [...differences].map(
    (hour) => `statistics: account ${id}: ${hour} is not what the history says`,
  );
}
