import { Pool } from 'pg';
import { COUNTS, type HourCounts } from './visits.js';
import { StatisticsTable } from './statistics-table.service.js';

/** Limits the output. */
const MAX_ERRORS = 100;

/** One statement, so that counts and progress are of one moment. */
const STORED_COUNTS = `
  select a.id, coalesce(s.time_zone, a.time_zone) as time_zone,
    greatest(s.seq, (select seq from statistics_progress), -1) as seq,
    coalesce((
      select jsonb_agg(jsonb_build_array(h.card_id, h.location_id, h.user_id, h.day, h.hour, ${COUNTS.map((name) => `h.${name}`).join(', ')}))
      from statistics_hours h where h.account_id = a.id
        and (${COUNTS.map((name) => `h.${name} <> 0`).join(' or ')})), '[]') as hours
  from accounts a left join statistics_stores s on s.account_id = a.id
  where a.id > $1 order by a.id limit 1`;

type StoredCounts = { id: number; time_zone: string; seq: number; hours: (number | string)[][] };

export type VerifiedStatistics = { stores: number; errors: string[] };

/** Compares the statistics of each store with what the history says, while both change. */
export class StatisticsVerification {
  /** @param table counts anew: tests stop it in between */
  constructor(
    private readonly pool: Pool,
    private readonly table = new StatisticsTable(pool),
  ) {}

  /** @param repair whether to count stores with differences anew */
  async verify(repair: boolean): Promise<VerifiedStatistics> {
    const verified: VerifiedStatistics = { stores: 0, errors: [] };
    for (let after = 0; ;) {
      const { rows } = await this.pool.query<StoredCounts>(STORED_COUNTS, [after]);
      const [store] = rows;
      if (!store) return verified;
      after = store.id;
      verified.stores++;
      const { id, time_zone: timeZone, seq } = store;
      const errors = findDifferences(store, await this.table.countAll(id, timeZone, seq));
      if (errors.length > 0 && repair) await this.table.replace(id);
      verified.errors.push(...errors.slice(0, Math.max(0, MAX_ERRORS - verified.errors.length)));
    }
  }
}

function findDifferences({ id, hours }: StoredCounts, expected: HourCounts): string[] {
  const toKey = (hour: (number | string)[]) => hour.slice(0, 5).join(' ');
  const stored = new Map(hours.map((hour) => [toKey(hour), hour.slice(5).join(' ')]));
  const errors: string[] = [];
  for (const { hour, counts } of expected.list()) {
    const key = toKey([hour.cardId, hour.locationId, hour.userId, hour.day, hour.hour]);
    if (stored.get(key) !== counts.join(' ')) errors.push(describe(id, hour.day, hour.hour));
    stored.delete(key);
  }
  for (const key of stored.keys()) {
    const [, , , day, hour] = key.split(' ');
    errors.push(describe(id, day, hour));
  }
  return errors;
}

function describe(id: number, day: string | undefined, hour: number | string | undefined): string {
  return `statistics: account ${id}: ${day}, hour ${hour} is not what the history says`;
}
