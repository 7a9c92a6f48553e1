import type { Pool } from 'pg';
import type { ChangedVisit, Visit, VisitCounter } from './visits.js';

/** SQL over `h`, an entry of the history: whether it is a stamping or a redemption. Also that of the index. */
export const IS_VISIT = `(h.name = 'reward.redeemed'
  or h.name = 'stamp.earned' and h.reverses is null and h.source in ('api', 'pos', 'app_scan'))`;

/** How many visits of each customer are read at first. Most have fewer. */
const FIRST_PAGE_SIZE = 20;
/** Limits the visits that are read at a time, of all customers that have more. */
const MAX_VISITS = 10_000;

/** Reads the next visits of some customers, of each from a place in the order in which they happened. */
const createVisitsQuery = (name: string, comparison: '<' | '>') => {
  const order = comparison === '<' ? 'desc' : 'asc';
  return {
    name,
    text: `
      select h.*, (select r.seq from history r where r.reverses = h.event_id) as reversed_seq
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
  seq: number;
  reversed_seq: number | null;
};

/** How far the visits of a customer have been read. */
type Place = { customerId: number; at: Date | '-infinity'; seq: number };

export type ChangedCustomer = {
  customerId: number;
  counter: VisitCounter;
  /** At least one. */
  visits: ChangedVisit[];
};

/** Reads the visits of customers from the history, page by page, for their counters. */
export class CustomerVisits {
  constructor(private readonly pool: Pool) {}

  /**
   * Adds every visit of some customers.
   * @param counters by the customer
   * @param upTo the number of the last entry of the history that is read
   */
  async addAll(counters: Map<number, VisitCounter>, upTo: number): Promise<void> {
    const places = [...counters.keys()].map((customerId) => {
      return { customerId, at: '-infinity' as const, seq: -1 };
    });
    await this.read(LATER_VISITS, places, upTo, (customerId, visits) => {
      for (const visit of visits) counters.get(customerId)?.add(visit);
      return true;
    });
  }

  /** Adds what has changed of the visits of some customers, and reads no more of them than their counters need. */
  async addChanged(customers: ChangedCustomer[], upTo: number): Promise<void> {
    const counters = new Map(customers.map(({ customerId, counter }) => [customerId, counter]));
    const firsts = customers.map(({ customerId, visits }) => {
      const [first] = visits.toSorted((one, other) => one.at - other.at || one.seq - other.seq);
      return { customerId, at: new Date(first?.at ?? 0), seq: first?.seq ?? 0 };
    });
    await this.read(EARLIER_VISITS, firsts, upTo, (customerId, visits) => {
      const counter = counters.get(customerId);
      for (const visit of visits) counter?.readEarlier(visit);
      return counter?.needsEarlier() === true;
    });
    const befores = firsts.map((first) => ({ ...first, seq: first.seq - 1 }));
    await this.read(LATER_VISITS, befores, upTo, (customerId, visits) => {
      const counter = counters.get(customerId);
      for (const visit of visits) counter?.add(visit);
      return counter?.needsLater() === true;
    });
  }

  /** @param take takes a page of a customer's visits and tells whether the next one is needed */
  private async read(
    query: typeof LATER_VISITS,
    from: Place[],
    upTo: number,
    take: (customerId: number, visits: Visit[]) => boolean,
  ): Promise<void> {
    let pageSize = FIRST_PAGE_SIZE;
    for (let open = from; open.length > 0; pageSize = Math.ceil(MAX_VISITS / open.length)) {
      const { rows } = await this.pool.query<VisitRow>({
        ...query,
        values: [
          open.map(({ customerId }) => customerId),
          open.map(({ at }) => at),
          open.map(({ seq }) => seq),
          upTo,
          pageSize,
        ],
      });
      const pages = Map.groupBy(rows, (row) => row.customer_id);
      open = [...pages].flatMap(([customerId, page]) => {
        const last = page.at(-1);
        const isMoreNeeded = take(customerId, page.map(toVisit));
        if (!last || page.length < pageSize || !isMoreNeeded) return [];
        return [{ customerId, at: last.occurred_at, seq: last.seq }];
      });
    }
  }
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
