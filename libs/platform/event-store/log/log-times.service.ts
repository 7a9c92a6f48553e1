import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { UnavailableError } from '#platform/kernel/errors.js';
import { pause } from '#platform/kernel/pause.js';
import { query } from '#platform/database/connection.js';
import { findLostPosition } from './history-places.js';
import { BEGINNING, EventStore, type EventTime, type Position } from '../port/event-store.js';
import { retryUntilAborted } from './follow-log.js';
import { computeEffectiveTimes } from './log-times.js';
import { isAfter } from '../port/position.js';

const PAGE = 500;
/** Fewer new events than this get no entry: each query reads them again. */
const ENTRY_SIZE = PAGE / 2;
/** Maximum number of pages that one query reads: about 25,000 events. */
const MAX_PAGES = 100;
const READABLE_WITHIN_MS = 2_000;
/** How long the follower waits for more events before it reads them. */
const GATHER_MS = 1_000;

/**
 * The end of a part of the log.
 * @property atMs when the last event of this part counts, in ms since 1970
 */
type TimeEntry = { n: number; stream: string; revision: number; atMs: number };

type EntryRow = { n: number; stream_id: string; revision: number; at_ms: number };

type PlacedEntry = TimeEntry & { position: Position };

const LOG_START: PlacedEntry = { n: 0, stream: '', revision: -1, atMs: 0, position: BEGINNING };

const COLUMNS = 'n, stream_id, revision, at_ms';
const NOW = '(extract(epoch from clock_timestamp()) * 1000)::bigint as now';

/**
 * Records which part of the log counts as recorded by which time (ADR-0034). Entries never change, so a query about the
 * past always has the same result. Any process may add one: it follows from the entry before it and from the log.
 */
@Injectable()
export class LogTimes {
  private readonly log = new Logger('log times');
  /** Events after the last entry that the dispatcher has already read. */
  private tail: { entry: PlacedEntry; moments: EventTime[] } = { entry: LOG_START, moments: [] };

  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
  ) {}

  /**
   * Reads the database's clock, in ms since 1970. Times are compared with it, because the clocks of processes may
   * differ.
   */
  async readNow(): Promise<number> {
    const [row] = await query<{ now: number }>(this.pool, {
      name: 'log_times_now',
      text: `select ${NOW}`,
    });
    return row?.now ?? 0;
  }

  /**
   * Finds the position of the last event that counts by a time, which must not be in the future. From then on the
   * result never changes.
   * @throws UnavailableError
   */
  async findPositionAt(time: number): Promise<Position> {
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const entries = await this.findEntriesAround(time);
      if (entries) return this.findLastPosition(time, entries.before, entries.after);
      if (pages === 0) await this.waitUntilReadable();
      if (!(await this.extendTo(time))) return BEGINNING;
    }
    throw new UnavailableError(
      'The history is not ready for reads at that time yet. Try again in a minute',
    );
  }

  /**
   * Keeps the times of the log current until the signal aborts, so that no query about the past has to read much of it.
   * Several processes may do it.
   */
  async run(signal: AbortSignal): Promise<void> {
    await retryUntilAborted(this.log, signal, (onSuccess) => this.follow(signal, onSuccess));
  }

  /**
   * Adds the entries that are due, now and whenever there are new events, until the signal aborts. Reads nothing
   * while there are none: on a server that others write to, each read would pass their newest events again.
   */
  private async follow(signal: AbortSignal, onSuccess: () => void): Promise<void> {
    const addDueEntries = async () => {
      while (!signal.aborted && (await this.addDueEntry()));
      onSuccess();
    };
    const after = await this.eventStore.findSettledPosition();
    await addDueEntries();
    await this.eventStore.subscribe({
      after,
      batch: PAGE,
      signal,
      onEvents: async (events) => {
        if (events.length === 0) return;
        await pause(GATHER_MS, signal);
        await addDueEntries();
      },
    });
  }

  /**
   * Adds an entry when there are many new events, or one of a clock that is ahead, which counts from now on.
   * @returns whether there may be more to do at once
   */
  async addDueEntry(): Promise<boolean> {
    const row = await this.findLastRow();
    if (this.tail.entry.n !== (row?.n ?? 0)) {
      this.tail = { entry: await this.findLastEntry(row), moments: [] };
    }
    const { entry, moments } = this.tail;
    const page = await this.eventStore.readMoments(
      moments.at(-1)?.position ?? entry.position,
      PAGE,
    );
    if (page.length === 0) return false;
    moments.push(...page);
    const now = await this.readNow();
    if (moments.length >= ENTRY_SIZE) {
      const effectiveTimes = computeEffectiveTimes(entry.atMs, getRecordedTimes(moments), now);
      const end = page.length < PAGE ? moments.length - 1 : findCut(moments, effectiveTimes);
      await this.addAndContinue(entry, moments, effectiveTimes, end);
    } else if (page.some(({ recordedAt }) => recordedAt > now)) {
      const effectiveTimes = computeEffectiveTimes(entry.atMs, getRecordedTimes(moments), now);
      await this.addAndContinue(entry, moments, effectiveTimes, moments.length - 1);
    }
    return page.length === PAGE;
  }

  /** Adds an entry, and keeps the events after it, which have been read already. */
  private async addAndContinue(
    entry: TimeEntry,
    moments: EventTime[],
    effectiveTimes: number[],
    end: number,
  ): Promise<void> {
    const added = await this.addEntry(entry, moments, effectiveTimes, end);
    const last = moments[end];
    if (!added || !last) return;
    this.tail = { entry: { ...added, position: last.position }, moments: moments.slice(end + 1) };
  }

  /**
   * Adds one entry towards the time.
   * @returns false: the log has no events
   */
  private async extendTo(time: number): Promise<boolean> {
    const entry = await this.findLastEntry(await this.findLastRow());
    if (entry.atMs > time) return true;
    const moments = await this.eventStore.readMoments(entry.position, PAGE);
    const effectiveTimes = computeEffectiveTimes(
      entry.atMs,
      getRecordedTimes(moments),
      await this.readNow(),
    );
    if (moments.length === PAGE) {
      await this.addEntry(entry, moments, effectiveTimes, findCut(moments, effectiveTimes));
      return true;
    }
    const added = await this.addEntry(entry, moments, effectiveTimes, moments.length - 1);
    if (added && added.atMs <= time) await this.closeAt(added, time);
    return added?.n !== 0;
  }

  /**
   * Adds an entry.
   * @returns undefined when another process was faster
   */
  private async addEntry(
    entry: TimeEntry,
    moments: EventTime[],
    effectiveTimes: number[],
    end: number,
  ): Promise<TimeEntry | undefined> {
    const moment = moments[end];
    if (!moment) return entry;
    const { stream, revision } = moment;
    const next = { n: entry.n + 1, stream, revision, atMs: effectiveTimes[end] ?? entry.atMs };
    return (await this.insertEntry(next, false)) ? next : undefined;
  }

  /** Adds an entry by which later events count later than the time. */
  private async closeAt({ n, stream, revision }: TimeEntry, time: number): Promise<void> {
    if (n > 0) await this.insertEntry({ n: n + 1, stream, revision, atMs: time + 1 }, true);
  }

  private async insertEntry(
    { n, stream, revision, atMs }: TimeEntry,
    isQuiet: boolean,
  ): Promise<boolean> {
    const [row] = await query<{ added: boolean }>(this.pool, {
      name: 'log_times_add',
      text: 'select es.add_log_time($1, $2, $3, $4, $5) as added',
      values: [n, stream, revision, atMs, isQuiet],
    });
    return row?.added === true;
  }

  /** Finds the last event that counts by the time, among those after one entry and up to the next. */
  private async findLastPosition(
    time: number,
    before: PlacedEntry,
    after: PlacedEntry,
  ): Promise<Position> {
    const moments = await this.readMoments(before.position, after.position);
    const effectiveTimes = computeEffectiveTimes(
      before.atMs,
      getRecordedTimes(moments),
      after.atMs,
    );
    const last = effectiveTimes.findLastIndex((at) => at <= time);
    return moments[last]?.position ?? before.position;
  }

  private async readMoments(after: Position, until: Position): Promise<EventTime[]> {
    const moments: EventTime[] = [];
    for (let from = after; isAfter(until, from);) {
      const page = await this.eventStore.readMoments(from, PAGE);
      moments.push(...page.filter(({ position }) => !isAfter(position, until)));
      const last = page.at(-1);
      if (!last) break;
      from = last.position;
    }
    return moments;
  }

  private async findEntriesAround(
    time: number,
  ): Promise<{ before: PlacedEntry; after: PlacedEntry } | undefined> {
    const rows = await query<EntryRow>(this.pool, {
      name: 'log_times_between',
      text: `with later as (
               select ${COLUMNS} from es.log_times where at_ms > $1 order by at_ms, n limit 1
             ), earlier as (
               select ${COLUMNS} from es.log_times where n < (select n from later) order by n desc limit 1
             )
             select * from later union all select * from earlier`,
      values: [time],
    });
    const [later, earlier] = await this.placeEntries(rows);
    return later && { after: later, before: earlier ?? LOG_START };
  }

  private async findLastRow(): Promise<EntryRow | undefined> {
    const [row] = await query<EntryRow>(this.pool, {
      name: 'log_times_last',
      text: `select ${COLUMNS} from es.log_times order by n desc limit 1`,
    });
    return row;
  }

  private async findLastEntry(row: EntryRow | undefined): Promise<PlacedEntry> {
    const [last] = await this.placeEntries(row ? [row] : []);
    return last ?? LOG_START;
  }

  private async placeEntries(rows: EntryRow[]): Promise<PlacedEntry[]> {
    const refs = rows.map(({ stream_id, revision }) => ({ stream: stream_id, revision }));
    const events = refs.length === 0 ? [] : await this.eventStore.readEvents(refs);
    return Promise.all(
      rows.map(async ({ n, stream_id: stream, revision, at_ms: atMs }) => {
        const event = events.find(
          (candidate) => candidate.stream === stream && candidate.revision === revision,
        );
        const position =
          event?.position ?? (await findLostPosition(this.pool, { stream, revision }));
        if (!position) {
          throw new UnavailableError('The history is not complete', {
            cause: new Error(
              `the log has no event ${revision} of ${stream}, which es.log_times names`,
            ),
          });
        }
        return { n, stream, revision, atMs, position };
      }),
    );
  }

  private async waitUntilReadable(): Promise<void> {
    if (await this.eventStore.reaches(await this.eventStore.head(), READABLE_WITHIN_MS)) return;
    throw new UnavailableError(
      'The newest part of the history cannot be read, because a transaction is still open in the database',
    );
  }
}

function getRecordedTimes(moments: EventTime[]): number[] {
  return moments.map(({ recordedAt }) => recordedAt);
}

/**
 * Finds where to end an entry within a page, so that enough of the events after it are known to tell wrong clocks: near
 * the middle, at the end of a transaction, and at an event that counts from its own time.
 */
function findCut(moments: EventTime[], effectiveTimes: number[]): number {
  const middle = moments.length >> 1;
  for (let i = middle; i > 0; i--) {
    const ends = moments[i]?.position.commit !== moments[i + 1]?.position.commit;
    if (ends && effectiveTimes[i] === moments[i]?.recordedAt) return i;
  }
  return middle;
}
