import { Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import {
  BACKWARDS,
  END,
  EventStoreDBClient,
  FORWARDS,
  jsonEvent,
  NO_STREAM,
  START,
  streamNameFilter,
  type JSONRecordedEvent,
} from '@eventstore/db-client';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'pg';
import type { EventMeta } from '#kernel/aggregate.js';
import { Config } from '#kernel/config.js';
import { messageOf, UnavailableError, UnknownOutcomeError } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { newId } from '#kernel/randomness.js';
import { isDatabaseUnavailable } from '#database/connection.js';
import { lastHead, prepareWrites, rowArguments, type PlacedRow } from './commit-arguments.js';
import {
  BEGINNING,
  ConflictError,
  EventStore,
  type Commit,
  type Head,
  type JsonObject,
  type EventRef,
  type Position,
  type StoredEvent,
  type Subscriber,
  type Write,
} from './event-store.js';
import {
  abandonIntent,
  closeIntent,
  headsAfter,
  intentOf,
  openIntent,
  takeOverIntents,
  type Intent,
} from './intents.js';
import { faultOf, within } from './eventstoredb-faults.js';
import { Batcher } from '#database/batcher.js';
import { refuseHistoryInPostgres } from './positions-check.js';
import { isAfter } from './position.js';

const PAGE = 500;
const READS_AT_ONCE = 8;
const ANSWER_WITHIN_MS = 10_000;
const SETTLE_WITHIN_MS = 30_000;
const RECOVER_EVERY_MS = 5_000;
const RECONNECT_MS = { first: 100, longest: 5_000 };

type Metadata = EventMeta & { schemaVersion: number; hash: string };

/**
 * Events in EventStoreDB; claims, rows and checkpoints stay in PostgreSQL. A commit of one stream is one
 * append, and its row follows. One that claims something, writes several streams or has a response to store
 * is first written down as an intent, which any process finishes if this one dies. An append whose outcome is unknown is
 * repeated identically: the server then answers as it did, or says that the stream has moved.
 */
@Injectable()
export class EventStoreDbEventStore
  extends EventStore
  implements OnModuleInit, OnApplicationShutdown
{
  override readonly rowsMayLag = true;
  private readonly log = new Logger(EventStoreDbEventStore.name);
  private readonly client: EventStoreDBClient;
  private readonly prefix: string;
  private readonly rowWrites = new Batcher<PlacedRow, void>(2, 32, (group) =>
    this.writeRows(group),
  );
  private readonly stopped = new AbortController();
  private recovering: Promise<void> | undefined;

  constructor(
    private readonly pool: Pool,
    config: Config,
    /** Beginnings of the names of our streams; whatever else the store holds is not read. */
    private readonly streams: string[],
  ) {
    super();
    this.prefix = config.eventstoreStreamPrefix;
    this.client = EventStoreDBClient.connectionString(config.eventstoreUrl ?? '');
  }

  async onModuleInit(): Promise<void> {
    await refuseHistoryInPostgres(this.pool);
    this.recovering = this.recoverNowAndThen();
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped.abort();
    await this.recovering;
    await this.client.dispose();
  }

  override async commit(commit: Commit): Promise<Head[]> {
    if (commit.writes.some((write) => write.events.length === 0)) {
      throw new Error('an empty append is refused');
    }
    const { writes, ...beside } = commit;
    const alone =
      writes.length === 1 &&
      [beside.claims, beside.releases, beside.responses].every((list) => !list?.length);
    return alone ? this.commitOne(commit) : this.commitIntent(intentOf(newId(), commit));
  }

  override async *readStream(
    stream: string,
    options: { from?: number; to?: number; direction?: 'forwards' | 'backwards' } = {},
  ): AsyncIterable<StoredEvent> {
    const backwards = options.direction === 'backwards';
    const { to } = options;
    for (let from = options.from; ;) {
      const start = from === undefined ? (backwards ? END : START) : BigInt(from);
      const page = await this.page(() =>
        this.client.readStream(this.prefix + stream, {
          fromRevision: start,
          direction: backwards ? BACKWARDS : FORWARDS,
          maxCount: PAGE,
        }),
      );
      for (const event of page) {
        if (to !== undefined && (backwards ? event.revision < to : event.revision > to)) return;
        yield event;
      }
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return;
      if (backwards && last.revision === 0) return;
      from = backwards ? last.revision - 1 : last.revision + 1;
    }
  }

  override async readEvents(refs: EventRef[]): Promise<StoredEvent[]> {
    const wanted = new Map<string, Set<number>>();
    for (const { stream, revision } of refs) {
      wanted.set(stream, (wanted.get(stream) ?? new Set()).add(revision));
    }
    const found: StoredEvent[] = [];
    const streams = [...wanted];
    const readNext = async (): Promise<void> => {
      for (let next = streams.pop(); next; next = streams.pop()) {
        const [stream, revisions] = next;
        const range = { from: Math.min(...revisions), to: Math.max(...revisions) };
        for await (const event of this.readStream(stream, range)) {
          if (revisions.has(event.revision)) found.push(event);
        }
      }
    };
    await Promise.all(Array.from({ length: READS_AT_ONCE }, readNext));
    return found;
  }

  override async readAll(after: Position, limit: number): Promise<StoredEvent[]> {
    const found: StoredEvent[] = [];
    // Some of what is read is not ours, and the first is the one that was read last.
    const maxCount = Math.min(PAGE, 2 * limit + 1);
    for (let from = after; found.length < limit;) {
      let read = 0;
      let last = from;
      const page = await this.page(
        () =>
          this.client.readAll({
            fromPosition: isAfter(from, BEGINNING) ? from : START,
            direction: FORWARDS,
            maxCount,
          }),
        (streamName, position) => {
          read++;
          last = position;
          return this.isOurs(streamName) && isAfter(position, after);
        },
      );
      for (const event of page) {
        if (isAfter(event.position, from) && found.length < limit) found.push(event);
      }
      // Reads begin with the event at their position, so a page of one is the last that there is.
      if (read < maxCount) break;
      from = last;
    }
    return found;
  }

  override async head(): Promise<Position> {
    let head = BEGINNING;
    await this.page(
      () => this.client.readAll({ fromPosition: END, direction: BACKWARDS, maxCount: 1 }),
      (_streamName, position) => {
        head = position;
        return false;
      },
    );
    return head;
  }

  override async ping(): Promise<void> {
    await this.head();
  }

  override async subscribe({ after, batch, onEvents, signal }: Subscriber): Promise<void> {
    let position = after;
    for (let backOff = RECONNECT_MS.first; !signal.aborted;) {
      const started = position;
      const dropped = await this.follow(position, batch, signal, async (events, to) => {
        await onEvents(events, to);
        position = to;
      });
      if (signal.aborted) return;
      if (isAfter(position, started)) backOff = RECONNECT_MS.first;
      this.log.warn(`a subscription was dropped (${dropped}); resumed in ${backOff} ms`);
      await pause(backOff * (0.5 + Math.random() / 2), signal);
      backOff = Math.min(2 * backOff, RECONNECT_MS.longest);
    }
  }

  /**
   * One connected stretch of a subscription. Rejects with what the subscriber threw; otherwise says why
   * the connection ended.
   */
  private async follow(
    after: Position,
    batch: number,
    signal: AbortSignal,
    onEvents: Subscriber['onEvents'],
  ): Promise<string> {
    let wakeUp: () => void = () => undefined;
    let ended: string | undefined;
    let checkpoint: Position | undefined;
    let position = after;
    const subscription = this.client.subscribeToAll(
      {
        fromPosition: isAfter(after, BEGINNING) ? after : START,
        filter: streamNameFilter({
          prefixes: this.streams.map((name) => this.prefix + name),
          checkpointReached: (_subscription, reached) => {
            checkpoint = reached;
            wakeUp();
          },
        }),
      },
      { highWaterMark: batch },
    );
    const end = (why: string) => {
      ended ??= why;
      wakeUp();
    };
    subscription.on('readable', () => wakeUp());
    subscription.on('error', (error: Error) => end(error.message));
    subscription.on('end', () => end('the server ended it'));
    subscription.on('close', () => end('the connection was closed'));
    const onAbort = () => end('stopped');
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      for (;;) {
        const woken = new Promise<void>((resolve) => {
          wakeUp = resolve;
        });
        const events: StoredEvent[] = [];
        while (events.length < batch) {
          const resolved: { event?: unknown } | null = subscription.read();
          if (resolved === null) break;
          const event = this.stored(resolved.event as JSONRecordedEvent | undefined);
          if (event) events.push(event);
        }
        const last = events.at(-1);
        if (last) {
          position = last.position;
          await onEvents(events, position);
        } else if (checkpoint && isAfter(checkpoint, position)) {
          position = checkpoint;
          await onEvents([], position);
        } else if (ended !== undefined) {
          return ended;
        } else {
          await woken;
        }
        if (signal.aborted) return 'stopped';
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      await subscription.unsubscribe().catch((error: unknown) => this.log.debug(messageOf(error)));
    }
  }

  private async commitOne(commit: Commit): Promise<Head[]> {
    const [prepared] = prepareWrites(commit);
    if (!prepared) throw new Error('a commit writes something');
    const { stream, row } = prepared.write;
    const head = lastHead(prepared);
    await this.append(prepared.write);
    if (row) {
      const placed = { accountId: commit.accountId, stream, head, row };
      await this.rowFollows(() => this.rowWrites.add(placed));
    }
    return [head];
  }

  private async commitIntent(intent: Intent): Promise<Head[]> {
    await this.open(intent);
    const [first, ...rest] = intent.content.writes;
    if (!first) throw new Error('a commit writes something');
    try {
      // What follows the first append must not fail any more, so it is looked at before.
      for (const write of rest) await this.expectHead(write);
      await this.append(first);
    } catch (error) {
      // Whatever else it is, it says that nothing was appended; kept, it would be tried forever.
      if (!(error instanceof UnknownOutcomeError)) await abandonIntent(this.pool, intent);
      throw error;
    }
    for (const write of rest) await this.append(write, true);
    await this.rowFollows(() => closeIntent(this.pool, intent));
    return headsAfter(intent.content);
  }

  /** @throws ConflictError when the stream does not stand where the write expects it */
  private async expectHead({ stream, expected }: Write): Promise<void> {
    for await (const { revision } of this.readStream(stream, { direction: 'backwards' })) {
      if (revision !== expected?.revision) throw new ConflictError();
      return;
    }
    if (expected !== null) throw new ConflictError();
  }

  /**
   * A lost answer leaves open whether the intent is there, and if it is, somebody will finish it: the
   * same one again settles that.
   * @throws ClaimTakenError, KeyTakenOverError, UnavailableError: there is no intent. @throws UnknownOutcomeError
   */
  private async open(intent: Intent): Promise<void> {
    const deadline = Date.now() + SETTLE_WITHIN_MS;
    for (let unknown = false; ;) {
      try {
        await openIntent(this.pool, intent);
        return;
      } catch (error) {
        if (!isDatabaseUnavailable(error)) throw error;
        if (error instanceof UnavailableError && !unknown) throw error;
        unknown = true;
        if (Date.now() > deadline) {
          throw new UnknownOutcomeError('whether an intent was written stays unknown', {
            cause: error,
          });
        }
        await wait(200);
      }
    }
  }

  /**
   * The events are there, so nothing may fail any more: a row that cannot be written now is written by
   * the next load of it, by the catch-up, or by whoever finishes the intent.
   */
  private async rowFollows(write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      this.log.warn(`a row stays behind its stream for now: ${messageOf(error)}`);
    }
  }

  /**
   * @param begun the commit has appended to another stream already, so this one has to follow
   * @throws ConflictError, UnavailableError: not appended. @throws UnknownOutcomeError
   */
  private async append({ stream, expected, events }: Write, begun = false): Promise<void> {
    const deadline = Date.now() + SETTLE_WITHIN_MS;
    const [prepared] = prepareWrites({ writes: [{ stream, expected, events }] });
    const batch = events.map(({ id, type, version, data, meta }, i) =>
      jsonEvent({
        id,
        type,
        data,
        metadata: { ...meta, schemaVersion: version, hash: prepared?.heads[i]?.hash },
      }),
    );
    const expectedRevision = expected === null ? NO_STREAM : BigInt(expected.revision);
    let unknown = begun;
    for (let attempt = 0; ; attempt++) {
      try {
        await within(
          this.client.appendToStream(this.prefix + stream, batch, { expectedRevision }),
          ANSWER_WITHIN_MS,
        );
        return;
      } catch (error) {
        const fault = faultOf(error);
        if (fault === 'conflict' && !begun) throw new ConflictError();
        if (fault === 'other' && !unknown) throw error;
        if (fault === 'unreachable' && !unknown) {
          throw new UnavailableError('The event store cannot be reached', { cause: error });
        }
        if (fault === 'unanswered') unknown = true;
        if (Date.now() > deadline) {
          if (unknown) {
            throw new UnknownOutcomeError('the outcome of an append stays unknown', {
              cause: error,
            });
          }
          throw new UnavailableError('The event store does not take appends', { cause: error });
        }
        await wait(Math.min(50 * 2 ** attempt, 1_000));
      }
    }
  }

  private async writeRows(placed: PlacedRow[]): Promise<PromiseSettledResult<void>[]> {
    // One row of a stream is enough, and one statement may not write a row twice.
    const newest = new Map<string, PlacedRow>();
    for (const one of placed) {
      const known = newest.get(one.stream);
      if (!known || known.head.revision < one.head.revision) newest.set(one.stream, one);
    }
    const rows = [...newest.values()].sort((a, b) => (a.stream < b.stream ? -1 : 1));
    await this.pool.query({
      name: 'es_write_rows',
      text: 'select es.write_rows($1, $2, $3)',
      values: [...rowArguments(rows), rows.map(({ stream }) => stream)],
    });
    return placed.map(() => ({ status: 'fulfilled', value: undefined }));
  }

  private async recoverNowAndThen(): Promise<void> {
    while (!this.stopped.signal.aborted) {
      try {
        for (const intent of await takeOverIntents(this.pool, 20)) await this.finishOrLeave(intent);
      } catch (error) {
        this.log.warn(`intents are looked at again later: ${messageOf(error)}`);
      }
      await pause(RECOVER_EVERY_MS, this.stopped.signal);
    }
  }

  /** One that cannot be finished now must not hold up the others; its lease brings it back. */
  private async finishOrLeave(intent: Intent): Promise<void> {
    try {
      await this.finish(intent);
    } catch (error) {
      this.log.warn(`intent ${intent.id} is tried again later: ${messageOf(error)}`);
    }
  }

  /** What a process left behind: appended identically, then closed; or given up when it never can be. */
  private async finish(intent: Intent): Promise<void> {
    try {
      const [first, ...rest] = intent.content.writes;
      if (first) await this.append(first);
      for (const write of rest) await this.append(write, true);
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      await abandonIntent(this.pool, intent);
      this.log.log(`intent ${intent.id} of a process that died came too late and is given up`);
      return;
    }
    await closeIntent(this.pool, intent);
    this.log.log(`intent ${intent.id} of a process that died is finished`);
  }

  /** A bounded read as a whole, within our own deadline; no stream is no events. */
  private async page(
    read: () => AsyncIterable<{ event?: unknown }> & { destroy: () => unknown },
    wanted: (streamName: string, position: Position) => boolean = () => true,
  ): Promise<StoredEvent[]> {
    const reading = read();
    try {
      return await within(this.collect(reading, wanted), ANSWER_WITHIN_MS);
    } catch (error) {
      // One that was given up must not go on in the background.
      reading.destroy();
      const fault = faultOf(error);
      if (fault === 'missing') return [];
      if (fault === 'other' || fault === 'conflict') throw error;
      throw new UnavailableError('The event store cannot be reached', { cause: error });
    }
  }

  private async collect(
    reading: AsyncIterable<{ event?: unknown }>,
    wanted: (streamName: string, position: Position) => boolean,
  ): Promise<StoredEvent[]> {
    const events: StoredEvent[] = [];
    for await (const resolved of reading) {
      const recorded = resolved.event as JSONRecordedEvent | undefined;
      if (!recorded || !wanted(recorded.streamId, positionOf(recorded))) continue;
      const event = this.stored(recorded);
      if (event) events.push(event);
    }
    return events;
  }

  private stored(recorded: JSONRecordedEvent | undefined): StoredEvent | undefined {
    if (!recorded || !this.isOurs(recorded.streamId)) return undefined;
    const { schemaVersion, hash, ...meta } = recorded.metadata as Metadata;
    return {
      id: recorded.id,
      stream: recorded.streamId.slice(this.prefix.length),
      revision: Number(recorded.revision),
      type: recorded.type,
      version: schemaVersion,
      data: recorded.data as JsonObject,
      meta,
      hash,
      position: positionOf(recorded),
    };
  }

  private isOurs(streamName: string): boolean {
    return this.streams.some((name) => streamName.startsWith(this.prefix + name));
  }
}

function positionOf(recorded: JSONRecordedEvent): Position {
  const { position } = recorded as { position?: Position };
  if (!position) throw new Error(`the server gave no position for event ${recorded.id}`);
  return { commit: position.commit, prepare: position.prepare };
}
