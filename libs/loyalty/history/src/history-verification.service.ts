import { Pool } from 'pg';
import { BEGINNING, type EventStore, type EventTime } from '#event-store/port/event-store.js';
import {
  formatPosition,
  isAfter,
  parsePosition,
  createPositionSql,
  type Position,
} from '#event-store/port/position.js';
import { HISTORY_SUBSCRIPTION } from './history-table.service.js';

const PAGE = 5_000;
/** Limits the output: a table that has nothing to do with the log need not be described row by row. */
const MAX_ERRORS = 1_000;

/** Reads rows and checkpoint in one statement, so that they are of one moment. */
const PROGRESS = `
  select c.position, coalesce((select max(seq) from history), -1) as last
  from es.checkpoints c where c.subscription = $1`;

const IS_OTHER = `
  (h.event_id, h.stream, h.revision, h.position, h.recorded_at, h.latest_recorded_at)
    is distinct from (e.event_id, e.stream, e.revision, e.position, e.recorded_at, e.latest)`;

/** Compares a part of the log with the rows of the same numbers, in both directions. */
const createDifferencesSql = (log: string, to: string): string => `
  select coalesce(e.seq, h.seq) as seq, e.stream, e.revision, h.stream as row_stream,
    h.revision as row_revision, e.event_id is distinct from h.event_id as other,
    array_remove(array[
      case when h.stream <> e.stream then 'stream' end,
      case when h.revision <> e.revision then 'revision' end,
      case when h.position <> e.position then 'position' end,
      case when h.recorded_at <> e.recorded_at then 'recorded_at' end,
      case when h.latest_recorded_at <> e.latest then 'latest_recorded_at' end
    ], null) as fields
  from ${log} e
  full join (select * from history where seq between $1 and ${to}) h on h.seq = e.seq
  where ${IS_OTHER}
  order by 1`;

/** Compares a page of a log outside the database. */
const PARAMETER_DIFFERENCES = createDifferencesSql(
  `(select $1 + ordinality - 1 as seq, x.*
    from unnest($3::uuid[], $4::text[], $5::bigint[], $6::text[], $7::timestamptz[], $8::timestamptz[])
      with ordinality as x (event_id, stream, revision, position, recorded_at, latest))`,
  '$2',
);

/** Reads a page of a log in the database, without a round trip through this process. */
const LOG_PAGE = `
  select $1 + row_number() over in_order - 1 as seq, event_id, stream_id as stream, revision,
    ${createPositionSql('tx', 'pos')} as position, recorded_at,
    greatest($2::timestamptz, max(recorded_at) over in_order) as latest
  from (
    select * from es.events
    where (tx, pos) > ($3::xid8, $4::bigint) and (tx, pos) <= ($5::xid8, $6::bigint)
    order by tx, pos limit ${PAGE}
  ) e
  window in_order as (order by tx, pos rows unbounded preceding)`;

/** Tells whether a full page differs at all, which is cheaper than finding where. */
const SUMMARY_IN_PLACE = `
  select count(*) as events, max(e.latest)::text as latest, max(e.position collate "C") as position,
    coalesce(bool_or(${IS_OTHER}), false) as differs
  from (${LOG_PAGE}) e
  left join (select * from history where seq between $1 and $1 + ${PAGE - 1}) h on h.seq = e.seq`;

/** @param $7 the last number to be looked at, which may be beyond the page */
const LOG_DIFFERENCES = `with log as materialized (${LOG_PAGE}) ${createDifferencesSql('log', '$7')}`;

type RowDifference = {
  seq: number;
  stream: string | null;
  revision: number | null;
  row_stream: string | null;
  row_revision: number | null;
  other: boolean;
  fields: string[];
};

/** Events of the log that follow one another, and where the table differs from them. */
type Page = { events: number; differences: RowDifference[] };

type Summary = { events: number; latest: string; position: string | null; differs: boolean };

export type VerifiedHistory = {
  /** Counts the events that the table must have. */
  events: number;
  /** One sentence for each. */
  errors: string[];
};

/**
 * Compares the table of the history with the log, up to the table's checkpoint and while both grow: each event must be
 * there once, in the order of the log. What an entry says about its event beyond that is compared by a rebuild.
 */
export class HistoryVerification {
  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
  ) {}

  /** @param onEvents gets the number of events of each page that has been compared */
  async verify(onEvents: (count: number) => void): Promise<VerifiedHistory> {
    const { rows } = await this.pool.query<{ position: string; last: number }>(PROGRESS, [
      HISTORY_SUBSCRIPTION,
    ]);
    const [progress] = rows;
    const until = progress ? parsePosition(progress.position) : BEGINNING;
    const pages = this.eventStore.readModelsMayLag
      ? this.compareReadPages(until, progress?.last ?? -1)
      : this.comparePagesInPlace(until, progress?.last ?? -1);
    const verified: VerifiedHistory = { events: 0, errors: [] };
    for await (const { events, differences } of pages) {
      verified.events += events;
      onEvents(events);
      verified.errors.push(...differences.map(describeDifference));
      if (verified.errors.length >= MAX_ERRORS) {
        verified.errors.push(
          `history: what comes after number ${verified.events - 1} is not compared: too much differs`,
        );
        break;
      }
    }
    return verified;
  }

  private async *comparePagesInPlace(until: Position, last: number): AsyncIterable<Page> {
    let [first, after, latest] = [0, BEGINNING, '-infinity'];
    for (;;) {
      const bounds = [after, until].flatMap(({ commit, prepare }) => [`${commit}`, `${prepare}`]);
      const values = [first, latest, ...bounds];
      const { rows } = await this.pool.query<Summary>({
        name: 'history_summary_in_place',
        text: SUMMARY_IN_PLACE,
        values,
      });
      const [page] = rows;
      if (!page) throw new Error('an aggregate without a row');
      const { events, position, differs } = page;
      const isEnd = events < PAGE || position === null;
      const next = first + events;
      const to = isEnd ? Math.max(next - 1, last) : next - 1;
      const differences =
        differs || isEnd ? await this.findDifferencesInPlace([...values, to]) : [];
      yield { events, differences };
      if (isEnd) return;
      [first, after, latest] = [next, parsePosition(position), page.latest];
    }
  }

  private async findDifferencesInPlace(values: unknown[]): Promise<RowDifference[]> {
    const { rows } = await this.pool.query<RowDifference>({
      name: 'history_differences_in_place',
      text: LOG_DIFFERENCES,
      values,
    });
    return rows;
  }

  private async *compareReadPages(until: Position, last: number): AsyncIterable<Page> {
    let [first, latest] = [0, 0];
    for (let ahead = this.eventStore.readMoments(BEGINNING, PAGE); ;) {
      const page = await ahead;
      const end = page.at(-1);
      const covered = page.filter(({ position }) => !isAfter(position, until));
      const isEnd = !end || covered.length < page.length;
      // The server reads the next page while this one is compared.
      if (!isEnd) ahead = this.eventStore.readMoments(end.position, PAGE);
      ahead.catch(() => undefined);
      const times = covered.map(({ recordedAt }) => (latest = Math.max(latest, recordedAt)));
      const next = first + covered.length;
      const to = isEnd ? Math.max(next - 1, last) : next - 1;
      yield {
        events: covered.length,
        differences: await this.findDifferences(first, to, covered, times),
      };
      if (isEnd) return;
      first = next;
    }
  }

  private async findDifferences(
    from: number,
    to: number,
    events: EventTime[],
    latest: number[],
  ): Promise<RowDifference[]> {
    if (to < from) return [];
    const { rows } = await this.pool.query<RowDifference>({
      name: 'history_differences',
      text: PARAMETER_DIFFERENCES,
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
    return rows;
  }
}

function describeDifference(difference: RowDifference): string {
  const { seq, stream, revision, fields } = difference;
  const event = `event ${revision} of ${stream}`;
  const there = `event ${difference.row_revision} of ${difference.row_stream}`;
  const what = () => {
    if (difference.row_stream === null) return `${event} is missing`;
    if (stream === null) return `${there} is not in the log`;
    if (difference.other) return `is ${there}, and in the log ${event}`;
    return `${event} is not what the log says (${fields.join(', ')})`;
  };
  return `history: number ${seq}: ${what()}`;
}
