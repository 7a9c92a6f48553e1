import { Logger } from '@nestjs/common';
import type { Pool } from 'pg';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { isDatabaseUnavailable } from '#platform/database/connection.js';
import { renderRetryDelay } from '#platform/event-store/port/subscription-position.js';
import { CustomerVisits } from './customer-visits.service.js';
import { removeUnusedHours, StoreRecount, type RecountTarget } from './store-recount.service.js';

const DUE = {
  name: 'statistics_recount_due',
  text: `
    select
      (select account_id from statistics_stores where recount_at <= now() order by recount_at limit 1) as id,
      exists (select from statistics_unused where remove_at <= now()) as has_unused`,
};

const POSTPONE = {
  name: 'statistics_recount_postpone',
  text: `
    insert into statistics_stores as s (account_id, time_zone, seq, recount_at, recount_failures)
    values ($1, $2, $3, now() + ${renderRetryDelay('1')}, 1)
    on conflict (account_id) do update set recount_failures = s.recount_failures + 1,
      recount_at = now() + ${renderRetryDelay('s.recount_failures + 1')}
    returning recount_failures as failures`,
};

/** Counts stores anew whose counts no longer apply, one after another and a page at a time. */
export class StoreRecounts {
  private readonly log = new Logger('statistics');
  private running: StoreRecount | undefined;

  /**
   * @param visits how visits are read: tests read them in small pages, or fail to
   * @param maxHours limits the hours in memory: tests hold few
   */
  constructor(
    private readonly pool: Pool,
    private readonly visits: CustomerVisits = new CustomerVisits(pool),
    private readonly maxHours?: number,
  ) {}

  /** Prepares to count a store anew. */
  create(target: RecountTarget): StoreRecount {
    return new StoreRecount(this.pool, this.visits, target, this.maxHours);
  }

  /**
   * Removes a part of what is no longer shown, or counts a page of a store that is due. A store that fails waits, so that it
   * delays no other.
   * @returns whether there is more to do
   */
  async advance(): Promise<boolean> {
    const { rows } = await this.pool.query<{ id: number | null; has_unused: boolean }>(DUE);
    const [due] = rows;
    if (due?.has_unused && (await removeUnusedHours(this.pool))) return true;
    if (due?.id != null) this.running ??= await this.begin(due.id);
    const recount = this.running;
    if (!recount) return false;
    try {
      if (await recount.countNext()) return true;
      this.running = undefined;
      await recount.publish();
    } catch (error) {
      if (isDatabaseUnavailable(error)) {
        if (!recount.canGoOn) this.running = undefined;
        throw error;
      }
      this.running = undefined;
      await recount.discard();
      await this.postpone(recount.target, error);
    }
    return true;
  }

  /** Counts a store anew, by the time zone that it has now. */
  async replace(accountId: number): Promise<void> {
    const recount = await this.begin(accountId);
    while (await recount.countNext());
    await recount.publish();
  }

  /**
   * Postpones a store that could not be counted. Its entries are not counted until it is counted anew.
   * @param upTo the last entry that was counted of it
   */
  async postpone({ accountId, timeZone, upTo }: RecountTarget, error: unknown): Promise<void> {
    const { rows } = await this.pool.query<{ failures: number }>({
      ...POSTPONE,
      values: [accountId, timeZone, upTo],
    });
    // Once, since it may take an operator days to do something about it.
    const level = rows[0]?.failures === 1 ? 'error' : 'debug';
    this.log[level](
      `a store could not be counted (${getErrorMessage(error)}): it is counted anew later, and until then its statistics stay as they are`,
      { account_id: accountId },
    );
  }

  /** Lets stores be counted anew whose counts no longer apply. Until then their entries are not counted. */
  async request(accountIds: number[]): Promise<void> {
    await this.pool.query(
      'update statistics_stores set recount_at = coalesce(recount_at, now()) where account_id = any ($1)',
      [accountIds],
    );
  }

  private async begin(accountId: number): Promise<StoreRecount> {
    const { rows: last } = await this.pool.query<{ seq: number }>(
      'select coalesce(max(seq), -1) as seq from history',
    );
    // After the last entry, so that the entry of any later move to another time zone is behind it.
    const { rows: store } = await this.pool.query<{ time_zone: string }>(
      'select time_zone from accounts where id = $1',
      [accountId],
    );
    return this.create({
      accountId,
      timeZone: store[0]?.time_zone ?? 'UTC',
      upTo: last[0]?.seq ?? -1,
    });
  }
}
