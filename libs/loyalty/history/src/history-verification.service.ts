import { Pool } from 'pg';
import { BEGINNING, type EventStore, type Moment } from '#event-store/event-store.js';
import { formatPosition, isAfter, parsePosition } from '#event-store/position.js';
import { HISTORY_SUBSCRIPTION } from './history-table.service.js';

const PAGE = 5_000;
/** A table that has nothing to do with the log need not be described row by row. */
const MOST_FAULTS = 1_000;

/** One statement, so that rows and checkpoint are of one moment. */
const REACHED = `
  select c.position, coalesce((select max(seq) from history), -1) as last
  from es.checkpoints c where c.subscription = $1`;

/** What the log says at these numbers is compared with the rows there, in both directions. */
const DIFFERENCES = `
  select coalesce(e.seq, h.seq) as seq, e.stream, e.revision, h.stream as found_stream,
    h.revision as found_revision, e.event_id is distinct from h.event_id as other,
    array_remove(array[
      case when h.stream <> e.stream then 'stream' end,
      case when h.revision <> e.revision then 'revision' end,
      case when h.position <> e.position then 'position' end,
      case when h.recorded_at <> e.recorded_at then 'recorded_at' end,
      case when h.latest_recorded_at <> e.latest then 'latest_recorded_at' end
    ], null) as fields
  from (
    select $1 + ordinality - 1 as seq, x.*
    from unnest($3::uuid[], $4::text[], $5::bigint[], $6::text[], $7::timestamptz[], $8::timestamptz[])
      with ordinality as x (event_id, stream, revision, position, recorded_at, latest)
  ) e
  full join (select * from history where seq between $1 and $2) h on h.seq = e.seq
  where (h.event_id, h.stream, h.revision, h.position, h.recorded_at, h.latest_recorded_at)
    is distinct from (e.event_id, e.stream, e.revision, e.position, e.recorded_at, e.latest)
  order by 1`;

type Found = {
  seq: number;
  stream: string | null;
  revision: number | null;
  found_stream: string | null;
  found_revision: number | null;
  other: boolean;
  fields: string[];
};

export type VerifiedHistory = {
  /** How many events the table must have. */
  events: number;
  /** One sentence for each. */
  faults: string[];
};

/**
 * Compares the table of the history with the log, up to the table's checkpoint and while both grow: each event must be
 * there once, in the order of the log. What an entry says about its event beyond that is compared by a rebuild.
 */
export class HistoryVerification {
  constructor(
    private readonly pool: Pool,
    private readonly store: EventStore,
  ) {}

  async verify(): Promise<VerifiedHistory> {
    const { rows } = await this.pool.query<{ position: string; last: number }>(REACHED, [
      HISTORY_SUBSCRIPTION,
    ]);
    const [reached] = rows;
    const until = reached ? parsePosition(reached.position) : BEGINNING;
    const faults: string[] = [];
    let events = 0;
    let latest = 0;
    for (let ahead = this.store.readMoments(BEGINNING, PAGE); ;) {
      const page = await ahead;
      const last = page.at(-1);
      const covered = page.filter(({ position }) => !isAfter(position, until));
      const isEnd = !last || covered.length < page.length;
      // The server reads the next page while this one is compared.
      if (!isEnd) ahead = this.store.readMoments(last.position, PAGE);
      ahead.catch(() => undefined);
      const first = events;
      events += covered.length;
      const times = covered.map(({ recordedAt }) => (latest = Math.max(latest, recordedAt)));
      const to = isEnd ? Math.max(events - 1, reached?.last ?? -1) : events - 1;
      faults.push(...(await this.faults(first, to, covered, times)));
      if (isEnd) return { events, faults };
      if (faults.length >= MOST_FAULTS) {
        faults.push(`history: what comes after number ${to} is not compared: too much differs`);
        return { events, faults };
      }
    }
  }

  private async faults(
    from: number,
    to: number,
    events: Moment[],
    latest: number[],
  ): Promise<string[]> {
    if (to < from) return [];
    const { rows } = await this.pool.query<Found>({
      name: 'history_differences',
      text: DIFFERENCES,
      values: [
        from,
        to,
        events.map(({ id }) => id),
        events.map(({ stream }) => stream),
        events.map(({ revision }) => revision),
        events.map(({ position }) => formatPosition(position)),
        events.map(({ recordedAt }) => new Date(recordedAt).toISOString()),
        latest.map((time) => new Date(time).toISOString()),
      ],
    });
    return rows.map(faultOf);
  }
}

function faultOf(found: Found): string {
  const { seq, stream, revision, fields } = found;
  const event = `event ${revision} of ${stream}`;
  const there = `event ${found.found_revision} of ${found.found_stream}`;
  const what = () => {
    if (found.found_stream === null) return `${event} is missing`;
    if (stream === null) return `${there} is not in the log`;
    if (found.other) return `is ${there}, and in the log ${event}`;
    return `${event} is not what the log says (${fields.join(', ')})`;
  };
  return `history: number ${seq}: ${what()}`;
}
