import { getCommandKey, parseStreamName } from '#kernel/aggregate.js';
import type pg from 'pg';
import { toReadModelArguments } from '../postgres/commit-arguments.js';
import type { EventStore, Position, StoredEvent } from '../port/event-store.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';
import type { AnyReadModel } from '../read-models/read-models.js';
import { DamagedHistoryError } from '#kernel/errors.js';
import { retryUntilAvailable } from '#kernel/retry-until.js';
import { STAGING } from './staging-tables.js';
import {
  applyEvent,
  openForReplay,
  readStreamsForReplay,
  type ReplayedEvent,
  type StreamRange,
  createReplay,
  toReadModelUpdate,
  type StreamClaim,
  type StreamReplay,
} from './stream-replay.js';

const WRITE_BATCH_SIZE = 500;
const PAGE = 1_000;
/**
 * Replays of the streams that the log came to last, some KiB each. When there are more, all but half as many are
 * written: those must be more than the streams of one command, whose claims get the revision at its end.
 */
const MAX_OPEN_REPLAYS = 20_000;

const WRITE_CLAIMS = `
  insert into ${STAGING}.claims (account_id, kind, value, stream_id, revision)
  select a, k, decode(v, 'hex'), s, r
  from jsonb_to_recordset($1::jsonb) as x(a bigint, k text, v text, s text, r bigint)
  order by a, k, v
  -- of two streams that were read at different moments, the one that took the value over comes again in the log
  on conflict (account_id, kind, value) do update
    set stream_id = excluded.stream_id, revision = excluded.revision`;
const RELEASE_CLAIMS = `
  delete from ${STAGING}.claims c
  using jsonb_to_recordset($1::jsonb) as x(a bigint, k text, v text, s text)
  where c.account_id = x.a and c.kind = x.k and c.value = decode(x.v, 'hex') and c.stream_id = x.s`;
/** Of a stream whose replay was resumed, the claims before it are in the table alone. */
const RELEASE_ALL = `
  delete from ${STAGING}.claims c
  using jsonb_to_recordset($1::jsonb) as x(s text, r bigint)
  where c.stream_id = x.s and c.revision < x.r`;
/** Those that are still erased when their replay is written are inserted again. */
const RESUME_ERASED = `
  delete from ${STAGING}.erased where stream_id = any ($1) returning stream_id`;
const INSERT_ERASED = `
  insert into ${STAGING}.erased (stream_id) select unnest($1::text[]) on conflict do nothing`;

/** Fills the staging tables of read models and claims, by projecting streams as commands do. */
export class StagingBuilder {
  /** By stream, the least recently used first. */
  private readonly openReplays = new Map<string, StreamReplay>();

  constructor(
    /**
     * A client of the tables' owner, with STAGING as its search path, so that `es.write_read_models` writes the staging
     * tables.
     */
    private readonly client: pg.ClientBase,
    private readonly eventStore: EventStore,
    private readonly keys: PersonalKeys,
    private readonly allReadModels: AnyReadModel[],
    private readonly withClaims: boolean,
    private readonly maxOpenReplays = MAX_OPEN_REPLAYS,
  ) {}

  /**
   * Projects whole streams. May be repeated, because read models only ever move forward.
   * @returns the number of events
   * @throws an Error that names the stream that cannot be projected
   */
  buildStreams(ranges: StreamRange[]): Promise<number> {
    return retryUntilAvailable(() => this.buildStreamsOnce(ranges));
  }

  private async buildStreamsOnce(ranges: StreamRange[]): Promise<number> {
    let events = 0;
    let done: StreamReplay[] = [];
    let current: StreamReplay | undefined;
    for await (const batch of readStreamsForReplay(this.eventStore, this.keys, ranges)) {
      events += batch.length;
      for (const event of batch) {
        const { stream } = event.stored;
        if (current?.stream !== stream) {
          if (current) done.push(current);
          current = this.createReplay(stream);
        }
        if (current) this.apply(current, event);
      }
      if (done.length >= WRITE_BATCH_SIZE) {
        await this.write(done);
        done = [];
      }
    }
    if (current) done.push(current);
    await this.write(done);
    return events;
  }

  /**
   * Projects the next page of the log, from its beginning on. Keeps the streams in memory, and writes those that nothing
   * has happened to for long: `flush` writes the rest.
   * @returns the number of events that belong to a read model
   * @throws an Error that names the stream that cannot be projected
   */
  async add(events: StoredEvent[]): Promise<number> {
    const own = this.listOwn(events);
    const opened = await retryUntilAvailable(() => openForReplay(this.keys, own));
    await this.replay(opened, this.openReplays);
    const excess = this.openReplays.size - this.maxOpenReplays;
    if (excess > 0) await this.close(excess + this.maxOpenReplays / 2);
    return own.length;
  }

  /** Writes what `add` keeps in memory. */
  async flush(): Promise<void> {
    await this.close(this.openReplays.size);
  }

  /** Writes replays, the least recently used first. */
  private async close(count: number): Promise<void> {
    const oldest = [...this.openReplays.values()].slice(0, count);
    for (let i = 0; i < oldest.length; i += WRITE_BATCH_SIZE) {
      const some = oldest.slice(i, i + WRITE_BATCH_SIZE);
      await this.write(some);
      for (const { stream } of some) this.openReplays.delete(stream);
    }
  }

  /**
   * Applies the log to the staging tables, up to its end or up to a head.
   * @param touchedStreams receives the streams of the events
   * @returns the position to continue from
   */
  async catchUp(after: Position, touchedStreams: Set<string>, head?: Position): Promise<Position> {
    for (let position = after; ;) {
      const from = position;
      const page = head
        ? await this.eventStore.readUntil(head, from, PAGE)
        : await retryUntilAvailable(() => this.eventStore.readAll(from, PAGE));
      const events = page.length < PAGE ? page : keepWholeCommands(page);
      const last = events.at(-1);
      if (!last) return position;
      for (const { stream } of events) touchedStreams.add(stream);
      const replays = new Map<string, StreamReplay>();
      await this.replay(await openForReplay(this.keys, this.listOwn(events)), replays);
      await this.write([...replays.values()]);
      position = last.position;
      if (page.length < PAGE) return position;
    }
  }

  /**
   * Applies a page of the log to replays, and resumes those of other streams from the staging tables.
   * @param replays by stream, the least recently used first
   */
  private async replay(events: ReplayedEvent[], replays: Map<string, StreamReplay>): Promise<void> {
    const resumed = new Map<string, StreamReplay>();
    for (const { stored } of events) {
      const { stream } = stored;
      if (replays.has(stream) || resumed.has(stream)) continue;
      const newReplay = this.createReplay(stream);
      if (newReplay) resumed.set(stream, newReplay);
    }
    await this.resume([...resumed.values()]);
    for (const event of events) {
      const { stream } = event.stored;
      const replay = replays.get(stream) ?? resumed.get(stream);
      if (!replay) throw new Error(`${stream} has no replay`);
      this.apply(replay, event);
      replays.delete(stream);
      replays.set(stream, replay);
    }
  }

  private apply(replay: StreamReplay, event: ReplayedEvent): void {
    try {
      applyEvent(replay, event, this.keys);
    } catch (cause) {
      if (cause instanceof DamagedHistoryError) throw cause;
      const { stream, revision } = event.stored;
      throw new Error(`${stream} cannot be projected (event ${revision})`, { cause });
    }
  }

  private createReplay(stream: string): StreamReplay | undefined {
    const readModel = this.findReadModel(stream);
    return readModel && createReplay(readModel, stream, parseStreamName(stream).id);
  }

  private listOwn(events: StoredEvent[]): StoredEvent[] {
    return events.filter(({ stream }) => this.findReadModel(stream) !== undefined);
  }

  private findReadModel(stream: string): AnyReadModel | undefined {
    const { aggregate: name, id } = parseStreamName(stream);
    if (!Number.isSafeInteger(id)) return undefined;
    return this.allReadModels.find(({ aggregate }) => aggregate.name === name);
  }

  /** Resumes replays from the read models that the staging tables contain already. */
  private async resume(all: StreamReplay[]): Promise<void> {
    for (const readModel of this.allReadModels) {
      const own = new Map(
        all.filter((one) => one.readModel === readModel).map((one) => [one.id, one]),
      );
      if (own.size === 0) continue;
      const existing = await this.client.query<{
        id: number;
        revision: number;
        hash: Buffer;
        state: { accountId: number };
      }>(
        `select id, revision, hash, state from ${STAGING}.${readModel.table} where id = any ($1)`,
        [[...own.keys()]],
      );
      for (const { id, revision, hash, state } of existing.rows) {
        const one = own.get(id);
        if (one) {
          const head = { revision, hash: hash.toString('hex') };
          Object.assign(one, { head, state, isResumed: true });
        }
      }
    }
    if (!this.withClaims || all.length === 0) return;
    const { rows } = await this.client.query<{ stream_id: string }>(RESUME_ERASED, [
      all.map(({ stream }) => stream),
    ]);
    const erased = new Set(rows.map(({ stream_id }) => stream_id));
    for (const one of all) if (erased.has(one.stream)) one.isErased = true;
  }

  private async write(all: StreamReplay[]): Promise<void> {
    const placed = all.flatMap((one) => toReadModelUpdate(one) ?? []);
    for (let i = 0; i < placed.length; i += WRITE_BATCH_SIZE) {
      const some = placed.slice(i, i + WRITE_BATCH_SIZE);
      const streams = some.map(({ stream }) => stream);
      await this.client.query({
        name: 'rebuild_rows',
        text: 'select es.write_read_models($1, $2, $3)',
        values: [...toReadModelArguments(some), streams],
      });
    }
    if (!this.withClaims) return;
    const released = all.flatMap(({ stream: s, isResumed, releasedAllAt: r }) =>
      isResumed && r !== undefined ? [{ s, r }] : [],
    );
    if (released.length > 0) await this.client.query(RELEASE_ALL, [JSON.stringify(released)]);
    const releases = all.flatMap(({ stream, releasedClaims }) =>
      [...releasedClaims.values()].map((claim) => toClaimRow(stream, claim)),
    );
    if (releases.length > 0) await this.client.query(RELEASE_CLAIMS, [JSON.stringify(releases)]);
    // Two streams may hold the same value where the log ends between their events: the one used last took it over.
    const claims = new Map(
      all.flatMap((one) =>
        [...one.claims].map(([name, claim]) => [name, toClaimRow(one.stream, claim)]),
      ),
    );
    if (claims.size > 0) {
      await this.client.query({
        name: 'rebuild_claims',
        text: WRITE_CLAIMS,
        values: [JSON.stringify([...claims.values()])],
      });
    }
    const erasedStreams = all.filter((one) => one.isErased).map(({ stream }) => stream);
    if (erasedStreams.length > 0) await this.client.query(INSERT_ERASED, [erasedStreams]);
  }
}

function toClaimRow(stream: string, claim: StreamClaim): object {
  const { accountId: a, kind: k, value: v, revision: r } = claim;
  return { a, k, v, s: stream, r };
}

/** Drops the last command of a page, whose last events may not be on the page, unless it is the only one. */
function keepWholeCommands(page: StoredEvent[]): StoredEvent[] {
  const last = page.at(-1);
  if (!last) return page;
  const lastCommand = getCommandKey(last.meta);
  const whole = page.slice(
    0,
    page.findLastIndex(({ meta }) => getCommandKey(meta) !== lastCommand) + 1,
  );
  return whole.length > 0 ? whole : page;
}
