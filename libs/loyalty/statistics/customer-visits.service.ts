import type { Pool } from 'pg';
import { IS_VISIT } from '#loyalty/history/redemption-query.js';
import type { ChangedVisit, Visit, VisitCounter } from './visits.js';

/** Limits the visits of each customer that are read at first. Most customers have fewer. */
const FIRST_PAGE_SIZE = 20;
/** Limits the visits that are read at a time for the customers with more. */
const MAX_VISITS = 10_000;

/** Limits the visits of each customer that are read at a time: at first, and for some customers with more. */
type PageSizes = { first: number; next: (customerCount: number) => number };

const PAGE_SIZES: PageSizes = {
  first: FIRST_PAGE_SIZE,
  next: (customerCount) => Math.max(FIRST_PAGE_SIZE, Math.floor(MAX_VISITS / customerCount)),
};

/** Creates a query for the next visits of each of some customers, in the order in which they happened. */
const createVisitsQuery = (name: string, comparison: '<' | '>') => {
  const order = comparison === '<' ? 'desc' : 'asc';
  return {
    name,
    // By `limit 1` each reversal is looked up alone. The cursor is text: a Date has no microseconds.
    text: `
      select h.*, h.occurred_at::text as cursor_at,
        (select r.seq from history r where r.reverses = h.event_id limit 1) as reversed_seq
      from unnest($1::bigint[], $2::timestamptz[], $3::bigint[]) as c (customer_id, at, seq)
      cross join lateral (
        select h.customer_id, h.card_id, h.location_id, h.actor, h.name, h.stamps, h.occurred_at, h.seq, h.event_id
        from history h
        where h.customer_id = c.customer_id and (h.occurred_at, h.seq) ${comparison} (c.at, c.seq)
          and h.seq <= $4 and ${IS_VISIT}
        order by h.occurred_at ${order}, h.seq ${order}
        limit $5
      ) h
      order by h.customer_id, h.occurred_at ${order}, h.seq ${order}`,
  };
};

export const EARLIER_VISITS = createVisitsQuery('statistics_earlier_visits', '<');
export const LATER_VISITS = createVisitsQuery('statistics_later_visits', '>');

type VisitRow = {
  customer_id: number;
  card_id: number;
  location_id: number | null;
  actor: string;
  name: string;
  stamps: number | null;
  occurred_at: Date;
  cursor_at: string;
  seq: number;
  reversed_seq: number | null;
};

/** Says behind which visit of a customer the next page begins. @property at a timestamp of PostgreSQL, as text */
type Cursor = { customerId: number; at: string; seq: number };

/** @property visits those that a step changes, at least one */
export type ChangedCustomer = {
  customerId: number;
  counter: VisitCounter;
  visits: ChangedVisit[];
};

/** Reads the visits of customers from the history, page by page, for their counters. */
export class CustomerVisits {
  constructor(
    private readonly pool: Pool,
    private readonly pageSizes = PAGE_SIZES,
  ) {}

  /**
   * Adds every visit of some customers.
   * @param counters by the customer
   * @param upTo the number of the last entry of the history that is read
   */
  async addAll(counters: Map<number, VisitCounter>, upTo: number): Promise<void> {
    const cursors = [...counters.keys()].map((customerId) => {
      return { customerId, at: '-infinity', seq: -1 };
    });
    await this.read(LATER_VISITS, cursors, upTo, (customerId, visits) => {
      for (const visit of visits) counters.get(customerId)?.add(visit);
      return true;
    });
  }

  /** Adds what a step changes about the visits of some customers. Reads no more of them than their counters need. */
  async addChanged(customers: ChangedCustomer[], upTo: number): Promise<void> {
    const counters = new Map(customers.map(({ customerId, counter }) => [customerId, counter]));
    const firstCursors = customers.map(({ customerId, visits }) => {
      const [first] = visits.toSorted((one, other) => one.at - other.at || one.seq - other.seq);
      return { customerId, at: new Date(first?.at ?? 0).toISOString(), seq: first?.seq ?? 0 };
    });
    await this.read(EARLIER_VISITS, firstCursors, upTo, (customerId, visits) => {
      const counter = counters.get(customerId);
      for (const visit of visits) counter?.readEarlier(visit);
      return counter?.needsEarlier() === true;
    });
    const inclusiveCursors = firstCursors.map((cursor) => ({ ...cursor, seq: cursor.seq - 1 }));
    await this.read(LATER_VISITS, inclusiveCursors, upTo, (customerId, visits) => {
      const counter = counters.get(customerId);
      for (const visit of visits) counter?.add(visit);
      return counter?.needsLater() === true;
    });
  }

  /** @param take takes a page of a customer's visits and tells whether the next one is needed */
  private async read(
    query: typeof LATER_VISITS,
    firstCursors: Cursor[],
    upTo: number,
    take: (customerId: number, visits: Visit[]) => boolean,
  ): Promise<void> {
    let pageSize = this.pageSizes.first;
    for (let cursors = firstCursors; cursors.length > 0;) {
      const { rows } = await this.pool.query<VisitRow>({
        ...query,
        values: [
          cursors.map(({ customerId }) => customerId),
          cursors.map(({ at }) => at),
          cursors.map(({ seq }) => seq),
          upTo,
          pageSize,
        ],
      });
      const nextCursors: Cursor[] = [];
      for (const [customerId, page] of groupByCustomer(rows)) {
        const last = page.at(-1);
        const isMoreNeeded = take(customerId, page.map(toVisit));
        if (!last || page.length < pageSize || !isMoreNeeded) continue;
        nextCursors.push({ customerId, at: last.cursor_at, seq: last.seq });
      }
      cursors = nextCursors;
      pageSize = this.pageSizes.next(cursors.length);
    }
  }
}

function groupByCustomer(rows: VisitRow[]): Map<number, VisitRow[]> {
  const pages = new Map<number, VisitRow[]>();
  for (const row of rows) {
    const page = pages.get(row.customer_id);
    if (page) page.push(row);
    else pages.set(row.customer_id, [row]);
  }
  return pages;
}

function toVisit(row: VisitRow): Visit {
  const isRedemption = row.name === 'reward.redeemed';
  return {
    cardId: row.card_id,
    locationId: row.location_id,
    userId: findUserId(row.actor),
    at: row.occurred_at.getTime(),
    stamps: isRedemption ? 0 : (row.stamps ?? 0),
    isRedemption,
    seq: row.seq,
    reversedSeq: row.reversed_seq,
  };
}

/** Finds the user of an actor, such as `user:5`. */
export function findUserId(actor: string): number | null {
  const [, id] = /^user:(\d+)$/.exec(actor) ?? [];
  return id === undefined ? null : Number(id);
}
