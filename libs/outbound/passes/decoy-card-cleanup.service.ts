import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { workDaily } from '#platform/event-store/log/follow-log.js';

/** How many cards one statement deletes, so that it holds its locks only briefly. */
const BATCH_SIZE = 500;

/**
 * Nobody waits this long to find out whether an address is a customer's, and names that strangers have typed must not
 * be kept for ever. A card that is on a phone stays, like that of a customer (ADR-0051), and so does a confirmed one.
 */
const RETENTION_DAYS = 400;

/** Deletes the oldest first, which have the lowest ids. Google does not always report that a card was saved. */
const FORGET = {
  name: 'decoy_cards_forget',
  text: `
    with old as (
      select s.id from decoy_cards s
      where (s.state ->> 'issuedAt')::timestamptz < now() - make_interval(days => $1)
        and s.confirmed_at is null
        and not exists (select from pass_installations i where i.customer_card_id = s.id
                        and i.installed_at is not null and i.removed_at is null)
        and not exists (select from google_objects g where g.customer_card_id = s.id)
      order by s.id limit $2 for update skip locked
    ), opened as (
      delete from passes p using old where p.customer_card_id = old.id
    ), installed as (
      delete from pass_installations i using old where i.customer_card_id = old.id
    )
    delete from decoy_cards s using old where s.id = old.id`,
};

/** Deletes decoy cards that are on no phone. Runs once a day; several processes may do it. */
@Injectable()
export class DecoyCardCleanup {
  private readonly log = new Logger('deletion of old decoy cards');

  constructor(private readonly pool: Pool) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    await workDaily(this.log, signal, async () => {
      const deletedCount = await this.forget(signal);
      if (deletedCount > 0) this.log.log(`${deletedCount} old decoy cards were deleted`);
      return false;
    });
  }

  /** Deletes expired decoy cards. @returns how many */
  async forget(signal: AbortSignal): Promise<number> {
    for (let deletedCount = 0; ;) {
      const { rowCount } = await this.pool.query({
        ...FORGET,
        values: [RETENTION_DAYS, BATCH_SIZE],
      });
      deletedCount += rowCount ?? 0;
      if (rowCount !== BATCH_SIZE || signal.aborted) return deletedCount;
    }
  }
}
