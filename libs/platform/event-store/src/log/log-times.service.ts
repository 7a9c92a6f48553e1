import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { UnavailableError } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import { BEGINNING, EventStore, type Moment, type Position } from '../port/event-store.js';
import { timesInOrder } from './log-times.js';
import { isAfter } from '../port/position.js';

const PAGE = 500;
/** Fewer new events than this are read again each time that somebody asks. */
const ENTRY_EVERY = PAGE / 2;
/** What one question may work through: about 25,000 events. */
const MOST_PAGES = 100;
const READABLE_WITHIN_MS = 2_000;

/** @property at when the last event of this part of the log counts, in ms since 1970 */
type Entry = { n: number; stream: string; revision: number; at: number };

type EntryRow = { n: number; stream_id: string; revision: number; at_ms: number };

type Place = Entry & { position: Position };

const NOTHING: Place = { n: 0, stream: '', revision: -1, at: 0, position: BEGINNING };

const COLUMNS = 'n, stream_id, revision, at_ms';
const NOW = '(extract(epoch from clock_timestamp()) * 1000)::bigint as now';

/**
 * Which part of the log counts as recorded by which time (ADR-0034). Entries are never changed, so a question about
 * the past always has the same answer. Any process may add one: it follows from the entry before it and from the log.
 */
@Injectable()
export class LogTimes {
  /** Events after the last entry that the dispatcher has already looked at. */
  private tail: { entry: Place; moments: Moment[] } = { entry: NOTHING, moments: [] };

  constructor(
    private readonly pool: Pool,
    private readonly store: EventStore,
  ) {}

  /** The database's clock, which times are compared with: those of the processes may differ. In ms since 1970. */
  async now(): Promise<number> {
    const [row] = await ask<{ now: number }>(this.pool, {
      name: 'log_times_now',
      text: `select ${NOW}`,
    });
    return row?.now ?? 0;
  }

  /**
   * The last event that counts by a time, which must not be in the future. From then on no other answer is possible.
   * @throws UnavailableError
   */
  async positionAt(time: number): Promise<Position> {
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      const known = await this.between(time);
      if (known) return this.lastBy(time, known.before, known.after);
      if (pages === 0) await this.untilReadable();
      if (!(await this.extend(time))) return BEGINNING;
    }
    throw new UnavailableError(
      'The history is being prepared for questions about that time; try again in a minute',
    );
  }

  /**
   * For the dispatcher: adds an entry when there are many new events, or one of a clock that is ahead, which is to
   * count from now on.
   * @returns whether there may be more to do at once
   */
  async follow(): Promise<boolean> {
    const row = await this.lastRow();
    if (this.tail.entry.n !== (row?.n ?? 0)) {
      this.tail = { entry: await this.last(row), moments: [] };
    }
    const { entry, moments } = this.tail;
    const page = await this.store.readMoments(moments.at(-1)?.position ?? entry.position, PAGE);
    if (page.length === 0) return false;
    moments.push(...page);
    const now = await this.now();
    if (moments.length >= ENTRY_EVERY) {
      const counted = timesInOrder(entry.at, recordedIn(moments), now);
      const end = page.length < PAGE ? moments.length - 1 : cutIn(moments, counted);
      await this.addAndGoOn(entry, moments, counted, end);
    } else if (page.some(({ recordedAt }) => recordedAt > now)) {
      const counted = timesInOrder(entry.at, recordedIn(moments), now);
      await this.addAndGoOn(entry, moments, counted, moments.length - 1);
    }
    return page.length === PAGE;
  }

  /** What comes after the entry has been read already. */
  private async addAndGoOn(
    entry: Entry,
    moments: Moment[],
    counted: number[],
    end: number,
  ): Promise<void> {
    const added = await this.add(entry, moments, counted, end);
    const last = moments[end];
    if (!added || !last) return;
    this.tail = { entry: { ...added, position: last.position }, moments: moments.slice(end + 1) };
  }

  /** One step towards an entry after the time. @returns false: the log has no events */
  private async extend(time: number): Promise<boolean> {
    const entry = await this.last(await this.lastRow());
    if (entry.at > time) return true;
    const moments = await this.store.readMoments(entry.position, PAGE);
    const counted = timesInOrder(entry.at, recordedIn(moments), await this.now());
    if (moments.length === PAGE) {
      await this.add(entry, moments, counted, cutIn(moments, counted));
      return true;
    }
    const added = await this.add(entry, moments, counted, moments.length - 1);
    if (added && added.at <= time) await this.close(added, time);
    return added?.n !== 0;
  }

  /** @returns the entry; undefined: another process was faster */
  private async add(
    entry: Entry,
    moments: Moment[],
    counted: number[],
    end: number,
  ): Promise<Entry | undefined> {
    const moment = moments[end];
    if (!moment) return entry;
    const { stream, revision } = moment;
    const next = { n: entry.n + 1, stream, revision, at: counted[end] ?? entry.at };
    return (await this.put(next, false)) ? next : undefined;
  }

  /** Whatever is not in the log yet counts later than the time. */
  private async close({ n, stream, revision }: Entry, time: number): Promise<void> {
    if (n > 0) await this.put({ n: n + 1, stream, revision, at: time + 1 }, true);
  }

  private async put({ n, stream, revision, at }: Entry, quiet: boolean): Promise<boolean> {
    const [row] = await ask<{ added: boolean }>(this.pool, {
      name: 'log_times_add',
      text: 'select es.add_log_time($1, $2, $3, $4, $5) as added',
      values: [n, stream, revision, at, quiet],
    });
    return row?.added === true;
  }

  /** The last event that counts by the time, of those after one entry and up to the next. */
  private async lastBy(time: number, before: Place, after: Place): Promise<Position> {
    const moments = await this.moments(before.position, after.position);
    const counted = timesInOrder(before.at, recordedIn(moments), after.at);
    const last = counted.findLastIndex((at) => at <= time);
    return moments[last]?.position ?? before.position;
  }

  private async moments(after: Position, until: Position): Promise<Moment[]> {
    const found: Moment[] = [];
    for (let from = after; isAfter(until, from);) {
      const page = await this.store.readMoments(from, PAGE);
      found.push(...page.filter(({ position }) => !isAfter(position, until)));
      const last = page.at(-1);
      if (!last) break;
      from = last.position;
    }
    return found;
  }

  private async between(time: number): Promise<{ before: Place; after: Place } | undefined> {
    const rows = await ask<EntryRow>(this.pool, {
      name: 'log_times_between',
      text: `with later as (
               select ${COLUMNS} from es.log_times where at_ms > $1 order by at_ms, n limit 1
             ), earlier as (
               select ${COLUMNS} from es.log_times where n < (select n from later) order by n desc limit 1
             )
             select * from later union all select * from earlier`,
      values: [time],
    });
    const [later, earlier] = await this.placed(rows);
    return later && { after: later, before: earlier ?? NOTHING };
  }

  private async lastRow(): Promise<EntryRow | undefined> {
    const [row] = await ask<EntryRow>(this.pool, {
      name: 'log_times_last',
      text: `select ${COLUMNS} from es.log_times order by n desc limit 1`,
    });
    return row;
  }

  private async last(row: EntryRow | undefined): Promise<Place> {
    const [last] = await this.placed(row ? [row] : []);
    return last ?? NOTHING;
  }

  private async placed(rows: EntryRow[]): Promise<Place[]> {
    const refs = rows.map(({ stream_id, revision }) => ({ stream: stream_id, revision }));
    const events = refs.length === 0 ? [] : await this.store.readEvents(refs);
    return rows.map(({ n, stream_id: stream, revision, at_ms: at }) => {
      const found = events.find((one) => one.stream === stream && one.revision === revision);
      if (!found) {
        throw new UnavailableError('The history is not complete', {
          cause: new Error(
            `the log has no event ${revision} of ${stream}, which es.log_times names`,
          ),
        });
      }
      return { n, stream, revision, at, position: found.position };
    });
  }

  private async untilReadable(): Promise<void> {
    if (await this.store.reaches(await this.store.head(), READABLE_WITHIN_MS)) return;
    throw new UnavailableError(
      'The newest part of the history cannot be read, because a transaction is still open in the database',
    );
  }
}

function recordedIn(moments: Moment[]): number[] {
  return moments.map(({ recordedAt }) => recordedAt);
}

/**
 * Where to end an entry within a page, so that enough of the events after it are known to tell wrong clocks: near the
 * middle, at the end of a transaction, and at an event that counts from its own time.
 */
function cutIn(moments: Moment[], counted: number[]): number {
  const middle = moments.length >> 1;
  for (let i = middle; i > 0; i--) {
    const ends = moments[i]?.position.commit !== moments[i + 1]?.position.commit;
    if (ends && counted[i] === moments[i]?.recordedAt) return i;
  }
  return middle;
}
