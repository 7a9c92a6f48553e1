import type pg from 'pg';
import { rowArguments } from '../postgres/commit-arguments.js';
import type { EventStore, Position, StoredEvent } from '../port/event-store.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';
import { whenAvailable } from '../log/retry-policy.js';
import { SHADOW } from './staging-tables.js';
import {
  follow,
  newProgress,
  placedRow,
  type AnyTable,
  type HeldClaim,
  type StreamProgress,
} from './stream-progress.js';

const ROWS_AT_ONCE = 500;
const PAGE = 1_000;

/** A stream and the revision up to which to read it (inclusive). */
export type Wanted = { stream: string; to: number };

const WRITE_CLAIMS = `
  insert into ${SHADOW}.claims (account_id, kind, value, stream_id, revision)
  select distinct on (a, k, v) a, k, decode(v, 'hex'), s, r
  from jsonb_to_recordset($1::jsonb) as x(a bigint, k text, v text, s text, r bigint)
  order by a, k, v
  -- of two streams that were read at different moments, the one that took the value over comes again in the log
  on conflict (account_id, kind, value) do update
    set stream_id = excluded.stream_id, revision = excluded.revision`;
const RELEASE_CLAIMS = `
  delete from ${SHADOW}.claims c
  using jsonb_to_recordset($1::jsonb) as x(a bigint, k text, v text, s text)
  where c.account_id = x.a and c.kind = x.k and c.value = decode(x.v, 'hex') and c.stream_id = x.s`;
const NOTE_ERASED = `
  insert into ${SHADOW}.erased (stream_id) select unnest($1::text[]) on conflict do nothing`;

/** Fills the shadows of row tables, and of the claims, by folding streams as commands fold them. */
export class ShadowFiller {
  constructor(
    /** Of the tables' owner, with SHADOW as its search path: `es.write_read_models` then writes the shadows. */
    private readonly client: pg.ClientBase,
    private readonly store: EventStore,
    private readonly keys: PersonalKeys,
    private readonly tables: AnyTable[],
    private readonly withClaims: boolean,
  ) {}

  /**
   * Folds whole streams. May be repeated, because rows only ever move forward.
   * @returns how many events that took
   * @throws an Error that names the stream that cannot be folded
   */
  fill(wanted: Wanted[]): Promise<number> {
    return whenAvailable(() => this.fillOnce(wanted));
  }

  private async fillOnce(wanted: Wanted[]): Promise<number> {
    let events = 0;
    let done: StreamProgress[] = [];
    let current: StreamProgress | undefined;
    for await (const batch of this.store.readStreams(wanted)) {
      events += batch.length;
      const opened = await this.keys.opened(batch);
      batch.forEach((event, i) => {
        if (current?.stream !== event.stream) {
          if (current) done.push(current);
          current = this.begin(event.stream);
        }
        if (current) this.followed(current, event, opened[i]);
      });
      if (done.length >= ROWS_AT_ONCE) {
        await this.write(done);
        done = [];
      }
    }
    if (current) done.push(current);
    await this.write(done);
    return events;
  }

  /**
   * Folds the log into the shadows, up to its end or up to a head.
   * @param touched gets the streams that the events belong to
   * @returns where to go on
   */
  async catchUp(after: Position, touched: Set<string>, head?: Position): Promise<Position> {
    for (let position = after; ;) {
      const from = position;
      const page = head
        ? await this.store.readUntil(head, from, PAGE)
        : await whenAvailable(() => this.store.readAll(from, PAGE));
      const whole = page.length < PAGE ? page : wholeCommands(page);
      const last = whole.at(-1);
      if (!last) return position;
      await this.append(whole, touched);
      position = last.position;
      if (page.length < PAGE) return position;
    }
  }

  private async append(events: StoredEvent[], touched: Set<string>): Promise<void> {
    const byStream = new Map<string, StreamProgress>();
    const opened = await this.keys.opened(events);
    for (const { stream } of events) {
      touched.add(stream);
      const begun = byStream.has(stream) ? undefined : this.begin(stream);
      if (begun) byStream.set(stream, begun);
    }
    await this.resume([...byStream.values()]);
    events.forEach((event, i) => {
      const progress = byStream.get(event.stream);
      if (progress) this.followed(progress, event, opened[i]);
    });
    await this.write([...byStream.values()]);
  }

  private followed(
    progress: StreamProgress,
    event: StoredEvent,
    opened: StoredEvent | undefined,
  ): void {
    if (!opened) throw new Error('decryption must return every event');
    try {
      follow(progress, event, opened, this.keys);
    } catch (cause) {
      throw new Error(`${event.stream} cannot be folded (event ${event.revision})`, { cause });
    }
  }

  private begin(stream: string): StreamProgress | undefined {
    const dash = stream.lastIndexOf('-');
    const name = stream.slice(0, dash);
    const rows = this.tables.find(({ aggregate }) => aggregate.name === name);
    return rows && newProgress(rows, stream, Number(stream.slice(dash + 1)));
  }

  /** From the rows that the shadows have already. */
  private async resume(all: StreamProgress[]): Promise<void> {
    for (const rows of this.tables) {
      const own = new Map(all.filter((one) => one.rows === rows).map((one) => [one.id, one]));
      if (own.size === 0) continue;
      const found = await this.client.query<{
        id: number;
        revision: number;
        hash: Buffer;
        state: { accountId: number };
      }>(`select id, revision, hash, state from ${SHADOW}.${rows.table} where id = any ($1)`, [
        [...own.keys()],
      ]);
      for (const { id, revision, hash, state } of found.rows) {
        const one = own.get(id);
        if (one) Object.assign(one, { head: { revision, hash: hash.toString('hex') }, state });
      }
    }
  }

  private async write(all: StreamProgress[]): Promise<void> {
    const placed = all.flatMap((one) => placedRow(one) ?? []);
    for (let i = 0; i < placed.length; i += ROWS_AT_ONCE) {
      const some = placed.slice(i, i + ROWS_AT_ONCE);
      const streams = some.map(({ stream }) => stream);
      await this.client.query({
        name: 'rebuild_rows',
        text: 'select es.write_read_models($1, $2, $3)',
        values: [...rowArguments(some), streams],
      });
    }
    if (!this.withClaims) return;
    const released = all.flatMap((one) => claimsIn(one.stream, one.released));
    if (released.length > 0) await this.client.query(RELEASE_CLAIMS, [JSON.stringify(released)]);
    const held = all.flatMap((one) => claimsIn(one.stream, one.claims));
    if (held.length > 0) {
      await this.client.query({
        name: 'rebuild_claims',
        text: WRITE_CLAIMS,
        values: [JSON.stringify(held)],
      });
    }
    const erased = all.filter((one) => one.erased).map(({ stream }) => stream);
    if (erased.length > 0) await this.client.query(NOTE_ERASED, [erased]);
  }
}

function claimsIn(stream: string, claims: Map<string, HeldClaim>): object[] {
  return [...claims.values()].map(({ accountId: a, kind: k, value: v, revision: r }) => ({
    a,
    k,
    v,
    s: stream,
    r,
  }));
}

/** Without the command at the end, whose last events may not be on the page: unless there is no other. */
function wholeCommands(page: StoredEvent[]): StoredEvent[] {
  const last = page.at(-1);
  if (!last) return page;
  const { requestId } = last.meta;
  const whole = page.slice(0, page.findLastIndex(({ meta }) => meta.requestId !== requestId) + 1);
  return whole.length > 0 ? whole : page;
}
