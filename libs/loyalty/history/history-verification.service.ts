import { Pool } from 'pg';
import { BEGINNING, type StoredEvent } from '#platform/event-store/port/event-store.js';
import {
  formatPosition,
  isAfter,
  parsePosition,
  createPositionSql,
  type Position,
} from '#platform/event-store/port/position.js';
import { HISTORY_SUBSCRIPTION } from './history-table.service.js';

const PAGE = 5_000;
/** Limits the output: a table that has nothing to do with the log need not be described row by row. */
const MAX_ERRORS = 1_000;

/** Reads rows and position in one statement, so that they are of one moment. */
const PROGRESS = `
  select p.position, coalesce((select max(seq) from history), -1) as last
  from es.positions p where p.subscription = $1`;

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
 * Compares the table of the history with the log, up to the table's position and while both grow: each event must be
 * there once, in the order of the log. What an entry says about its event beyond that is compared by a rebuild.
 */
export class HistoryVerification {
  private readonly verified: VerifiedHistory = { events: 0, errors: [] };
  private latest = 0;

  private constructor(
    private readonly pool: Pool,
    private readonly until: Position,
    private readonly last: number,
  ) {}

  /** Begins a verification, of what the table has now. */
  static async begin(pool: Pool): Promise<HistoryVerification> {
    const { rows } = await pool.query<{ position: string; last: number }>(PROGRESS, [
      HISTORY_SUBSCRIPTION,
    ]);
    const [progress] = rows;
    const until = progress ? parsePosition(progress.position) : BEGINNING;
    return new HistoryVerification(pool, until, progress?.last ?? -1);
  }

  /**
   * Compares the whole table with a log in the same database.
   * @param onEvents gets the number of events of each page that has been compared
   */
  async verifyInPlace(onEvents: (count: number) => void): Promise<VerifiedHistory> {
    for await (const { events, differences } of this.comparePagesInPlace()) {
      onEvents(events);
      this.accept(events, differences);
      if (this.isOver) break;
    }
    return this.verified;
  }

  /**
   * Compares the next page of a log in another database: `end` compares the rest of the table.
   * @returns the number of events that the table must have
   */
  async add(page: StoredEvent[]): Promise<number> {
    const events = page.filter(({ position }) => !isAfter(position, this.until));
    if (events.length === 0 || this.isOver) return 0;
    let { latest } = this;
    const times = events.map(
      ({ meta }) => (latest = Math.max(latest, Date.parse(meta.recordedAt))),
    );
    const first = this.verified.events;
    this.accept(
      events.length,
      await this.findDifferences(first, first + events.length - 1, events, times),
    );
    this.latest = latest;
    return events.length;
  }

  /** Ends the comparison of the pages. */
  async end(): Promise<VerifiedHistory> {
    const { events } = this.verified;
    if (!this.isOver && events <= this.last)
      this.accept(0, await this.findDifferences(events, this.last, [], []));
    return this.verified;
  }

  private accept(events: number, differences: RowDifference[]): void {
    this.verified.events += events;
    this.verified.errors.push(...differences.map(describeDifference));
    if (!this.isOver) return;
    this.verified.errors.push(
      `history: what comes after number ${this.verified.events - 1} is not compared: too much differs`,
    );
  }

  private get isOver(): boolean {
    return this.verified.errors.length >= MAX_ERRORS;
  }

  private async *comparePagesInPlace(): AsyncIterable<Page> {
    const { until, last } = this;
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

  private async findDifferences(
    from: number,
    to: number,
    events: StoredEvent[],
    latest: number[],
  ): Promise<RowDifference[]> {
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
        events.map(({ meta }) => meta.recordedAt),
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
