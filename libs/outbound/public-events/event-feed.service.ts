import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { getNowMs } from '#platform/kernel/clock.js';
import { parsePublicEventId, readIdTime, toPublicEventId } from '#platform/kernel/public-id.js';
import { query } from '#platform/database/connection.js';
import { readPage } from '#platform/http/page-by-bytes.js';
import { ReceiptUses } from '#loyalty/stamping/receipt-uses.service.js';
import { readTestEventId } from './test-event-id.js';
import { EventBodies, type PublicEventRef } from './event-bodies.service.js';
import { type PublicEventType } from './public-events.js';

export type FeedPage = {
  /** JSON texts with the same bytes as in webhooks, without events of a partition that was just dropped. */
  envelopes: Buffer[];
  /** The id after which the next page starts; null on the last page. */
  next: string | null;
};

/** The number of events to render before any size is known. */
const INITIAL_COUNT = 16;

const FIND_POSITION = `select seq from webhook_events where event_id = $1 and account_id = $2`;

/** The start of a query by ids; `offset 0` ends it, or the planner may walk through all events of the store instead. */
const SELECT_BY_ID =
  'select seq, event_id, customer_id, account_id, type from webhook_events where event_id = any (';

/**
 * Looks for a cursor that is no stored event of the store. One of another store, or one that is not enqueued yet, is
 * stored all the same: the table `history` has it, or it is among the events that the table does not have yet. An id holds
 * the time at which it was made. Without `offset 0` the planner may read the whole log instead of its end.
 */
const FIND_RESUMPTION = {
  name: 'webhook_event_resumption',
  text: `select
           exists (select from webhook_events where event_id = $2)
             or exists (select from history where event_id = $3)
             or exists (
               select from (
                 select event_id from es.events
                 where (tx, pos) > (
                   select split_part(last, ':', 1)::bigint::text::xid8, split_part(last, ':', 2)::bigint
                   from coalesce((select position from history order by seq desc limit 1), '0:0') last)
                 order by tx desc, pos desc offset 0) newest
               where event_id = $3) as is_stored,
           o.recorded_at as oldest_at, (select restored_at from es.identity) as restored_at,
           (select event_id from webhook_events
            where account_id = $1 and recorded_at <= $4 and o.recorded_at <= $4
              and seq < webhook_first_id($4 + interval '2 days')
            order by seq desc limit 1) as resume_after
         from (select 1) as one
         left join lateral (
           select recorded_at from webhook_events where account_id = $1 order by seq limit 1) as o on true`,
};

type ResumptionRow = {
  is_stored: boolean;
  oldest_at: Date | null;
  restored_at: Date | null;
  resume_after: string | null;
};

/** Where to continue from an id that the feed does not have; null: from the beginning. */
export type Resumption = { after: string | null; isLost: boolean };

const DAY_MS = 86_400_000;

/** `text` is null when the event's partition was dropped. */
type RenderedRef = { ref: PublicEventRef; text: Buffer | null };

/** Lists a store's public events in the order in which they happened, whether or not there is a subscription. */
@Injectable()
export class EventFeed {
  constructor(
    private readonly pool: Pool,
    private readonly bodies: EventBodies,
    private readonly receipts: ReceiptUses,
    private readonly config: Config,
  ) {}

  /**
   * Renders a page of events.
   * @param after the id of the last envelope seen; null starts at the oldest that is stored
   * @param types null means all
   * @param externalRef only events with this receipt number; null means all
   * @param waitUntilLarge waits until the page may become large
   * @returns undefined when `after` is not a stored event of the store
   */
  async catchUp(
    accountId: number,
    options: {
      after: string | null;
      types: PublicEventType[] | null;
      externalRef: string | null;
      limit: number;
    },
    waitUntilLarge: () => Promise<void>,
  ): Promise<FeedPage | undefined> {
    const { after, types, externalRef, limit } = options;
    const position = after === null ? 0 : await this.findPosition(accountId, after);
    if (position === undefined) return undefined;
    const values: unknown[] = [accountId, position, limit + 1];
    const value = (parameter: unknown) => `$${values.push(parameter)}`;
    const source =
      externalRef === null
        ? 'webhook_events'
        : `(${SELECT_BY_ID} ${value(await this.findEventIds(accountId, externalRef))}::text[]) offset 0) e`;
    const rows = await query<{ seq: number; event_id: string; customer_id: number }>(this.pool, {
      text: `select seq, event_id, customer_id from ${source}
             where account_id = $1 and seq > $2 ${types === null ? '' : `and type = any (${value(types)})`}
             order by seq limit $3`,
      values,
    });
    const refs = rows.map((row): PublicEventRef => ({
      seq: row.seq,
      eventId: row.event_id,
      accountId,
      customerId: row.customer_id,
    }));
    const { page, hasMore } = await readPage<RenderedRef>(
      { limit, first: INITIAL_COUNT },
      (last, count) => {
        const from = last === undefined ? 0 : refs.indexOf(last.ref) + 1;
        return this.render(refs.slice(from, from + count));
      },
      ({ text }) => text?.length ?? 0,
      waitUntilLarge,
    );
    return {
      envelopes: page.flatMap(({ text }) => text ?? []),
      next: (hasMore && page.at(-1)?.ref.eventId) || null,
    };
  }

  /**
   * Finds where to continue when `after` is no event. It was lost if the service was restored since it was made, from a
   * backup that is older.
   * @returns undefined when it has been deleted, or is another store's
   */
  async findResumption(accountId: number, after: string): Promise<Resumption | undefined> {
    const uuid = parsePublicEventId(after);
    if (uuid === undefined) return undefined;
    const madeAt = readIdTime(uuid);
    // Made up.
    if (Number(madeAt) > getNowMs() + DAY_MS) return undefined;
    const [row] = await query<ResumptionRow>(this.pool, {
      ...FIND_RESUMPTION,
      values: [accountId, after, uuid, madeAt],
    });
    if (!row || row.is_stored) return undefined;
    // Earlier ones have been deleted.
    const keptSince =
      row.oldest_at ?? new Date(getNowMs() - this.config.webhookRetentionDays * DAY_MS);
    if (madeAt < keptSince) return undefined;
    const isLost = row.restored_at !== null && madeAt <= row.restored_at;
    return { after: row.resume_after, isLost };
  }

  private async render(refs: PublicEventRef[]): Promise<RenderedRef[]> {
    const texts = await this.bodies.getTexts(refs);
    return refs.map((ref) => {
      const text = texts.get(ref.seq);
      // If it were omitted, a reader that continues after the next event would never receive it.
      if (text === undefined || text === 'unrendered') {
        throw new Error(`${ref.eventId} could not be rendered`);
      }
      return { ref, text: typeof text === 'string' ? null : text };
    });
  }

  private async findEventIds(accountId: number, externalRef: string): Promise<string[]> {
    const events = await this.receipts.listEvents(accountId, externalRef);
    return events.map(({ id }) => toPublicEventId(id));
  }

  private async findPosition(accountId: number, eventId: string): Promise<number | undefined> {
    const [row] = await query<{ seq: number }>(this.pool, {
      name: 'webhook_event_position',
      text: FIND_POSITION,
      values: [eventId, accountId],
    });
    if (row) return row.seq;
    const uuid = parsePublicEventId(eventId);
    const test = uuid === undefined ? undefined : readTestEventId(uuid, accountId);
    const keptSince = getNowMs() - this.config.webhookRetentionDays * DAY_MS;
    return test && test.sentAt.getTime() >= keptSince ? test.position : undefined;
  }
}
