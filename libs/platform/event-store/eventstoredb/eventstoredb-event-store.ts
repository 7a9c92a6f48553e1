import { Injectable, Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { PlatformConfig } from '#platform/kernel/platform-config.js';
import {
  DamagedHistoryError,
  getErrorMessage,
  UnknownOutcomeError,
} from '#platform/kernel/errors.js';
import { createId } from '#platform/kernel/randomness.js';
import { BatchSlots } from '#platform/database/batcher.js';
import type { DatabasePool } from '#platform/database/database-pool.js';
import type { ProcessSession } from '#platform/database/process-session.js';
import { retryWhileUnknown } from '#platform/database/retry-while-unknown.js';
import {
  EventStore,
  type Commit,
  type Head,
  type EventRef,
  type Position,
  type StoredEvent,
  type Subscriber,
  type Write,
} from '../port/event-store.js';
import type { Damage, DamageCounts, LogMeasures } from '../port/log-measures.js';
import {
  abandonIntent,
  assertNoneWaitsForRepair,
  findDamaged,
  getHeadsAfter,
  createIntent,
  openIntent,
  sealIntent,
  setDamaged,
  waitUntilComplete,
  type Intent,
} from './intents.js';
import { IntentGroups } from './intent-groups.js';
import { IntentRecovery } from './intent-recovery.js';
import { EventStoreDbConnection } from './eventstoredb-connection.js';
import { EventStoreDbAppender } from './eventstoredb-appender.js';
import { EventStoreDbIdentity } from './eventstoredb-identity.js';
import { EventStoreDbReader } from './eventstoredb-reader.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';
import { OwnStreams } from './eventstoredb-streams.js';
import { ForeignEvents } from './foreign-events.js';
import { assertHead, isAppended } from './stream-heads.js';
import { EventStoreDbSubscription } from './eventstoredb-subscription.js';
import { EventStoreDbWatch } from './eventstoredb-watch.js';
import { Lanes } from '../commands/lane.js';
import { listCapNames } from '../port/caps.js';
import { RemainingWrites } from './remaining-writes.js';
import { measureEventStoreDbLog } from './measure-log.js';
import { findPlace } from '../log/history-places.js';
import { logServerVersion } from './server-version.js';
import { refuseHistoryInPostgres } from '../log/positions-check.js';
import type { StreamKind } from '../read-models/read-models.js';
import { DamageCheck } from './damage-check.js';
import { ReadModelCatchUp } from './read-model-catch-up.js';
import { ReadModelWriter } from './read-model-writer.js';

/** Longer than any group of read models takes, unless another transaction holds one of them. */
const READ_MODELS_STUCK_MS = 100;

/**
 * Writes and reads events in EventStoreDB; claims, read models and positions stay in PostgreSQL. A commit of one
 * stream is one append, and its read model follows. A commit that claims something, writes several streams or has a
 * response is first recorded as an intent, which any process finishes if this one dies.
 */
@Injectable()
export class EventStoreDbEventStore
  extends EventStore
  implements OnModuleInit, OnApplicationShutdown
{
  override readonly isInDatabase = false;
  override readonly readModelSlots = new BatchSlots(1, () => READ_MODELS_STUCK_MS);
  private readonly log = new Logger(EventStoreDbEventStore.name);
  private readonly foreignEvents = new ForeignEvents(this.log);
  private readonly connection: EventStoreDbConnection;
  private readonly reader: EventStoreDbReader;
  private readonly appender: EventStoreDbAppender;
  private readonly remainingWrites: RemainingWrites;
  private readonly subscription: EventStoreDbSubscription;
  private readonly identity: EventStoreDbIdentity;
  private readonly watch: EventStoreDbWatch;
  /** Whether the history on the server is known to belong to our database. The check at the start may read it then. */
  private isOurs = false;
  private readonly caps = new Lanes<never>();
  private readonly rowWriter: ReadModelWriter;
  private readonly catchUp: ReadModelCatchUp;
  private readonly intentGroups: IntentGroups;
  private readonly recovery: IntentRecovery;
  private readonly stopped = new AbortController();
  private watching: Promise<void> | undefined;

  constructor(
    private readonly pool: DatabasePool,
    private readonly keys: PersonalKeys,
    config: PlatformConfig,
    /** The kinds of our streams; other streams on the server are not read. */
    kinds: StreamKind[],
    private readonly session?: ProcessSession,
  ) {
    super();
    session?.addLeases({ name: 'es.intents', holder: 'process', endsAt: 'leased_until' });
    session?.addServer(() => this.watch.isReachable);
    const url = config.eventStoreUrl ?? '';
    this.connection = new EventStoreDbConnection(url);
    const streams = new OwnStreams(
      config.eventStoreStreamPrefix,
      kinds.map(({ name }) => `${name}-`),
      this.foreignEvents,
    );
    this.rowWriter = new ReadModelWriter(pool, this.readModelSlots);
    this.catchUp = new ReadModelCatchUp(pool, this);
    this.intentGroups = new IntentGroups(
      pool,
      this.readModelSlots,
      () => this.leaseHolder,
      (intent, isUnknown) => this.openAlone(intent, isUnknown),
    );
    this.reader = new EventStoreDbReader(this.connection, streams);
    this.appender = new EventStoreDbAppender(this.connection, streams, this.reader);
    this.remainingWrites = new RemainingWrites(this.appender, this);
    this.recovery = new IntentRecovery(
      pool,
      keys,
      this.reader,
      this.appender,
      this.remainingWrites,
      (intent, appended) => this.closeAppended(intent, appended),
    );
    this.subscription = new EventStoreDbSubscription(this.connection, streams, () =>
      this.reader.readHead(),
    );
    this.identity = new EventStoreDbIdentity(
      pool,
      this.connection,
      this.reader,
      streams,
      kinds,
      this.foreignEvents,
    );
    this.watch = new EventStoreDbWatch(this.reader, url, this.log, async () => {
      await this.identity.check();
      this.isOurs = true;
      await this.startCheck?.();
      await logServerVersion(this.connection, this.log);
    });
  }

  /**
   * Checks the event store at the start. While it is unavailable the process starts without it, and checks it later.
   * @throws ConfigError when the history there is not ours, or the server refuses us
   */
  async onModuleInit(): Promise<void> {
    await refuseHistoryInPostgres(this.pool);
    await this.watch.lookFirst();
    this.watching = this.watch.run(() => this.recovery.run(this.leaseHolder), this.stopped.signal);
  }

  /**
   * Marks the history in EventStoreDB as belonging to our database, before one is copied there.
   * @throws ConfigError when it holds another database's history
   * @throws UnavailableError
   */
  async claimForOurs(): Promise<void> {
    await this.identity.claimForOurs();
    this.watch.setOpen();
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped.abort();
    await this.watching;
    await this.connection.dispose();
  }

  override async commit(commit: Commit): Promise<Head[]> {
    if (commit.writes.some((write) => write.events.length === 0)) {
      throw new Error('an empty append is refused');
    }
    await this.watch.assertOpen();
    const { writes, cap, claims, releases, responses, erasures, sideEffects } = commit;
    const hasExtras =
      claims?.length ||
      releases?.length ||
      responses?.length ||
      erasures?.length ||
      sideEffects?.length;
    return writes.length === 1 && !cap && !hasExtras
      ? this.commitOne(commit)
      : this.commitIntent(createIntent(createId(), commit));
  }

  override async *readStream(
    ...[stream, options]: Parameters<EventStore['readStream']>
  ): AsyncIterable<StoredEvent> {
    await this.assertOurs();
    yield* this.reader.readStream(stream, options);
  }

  override async *readStreams(
    ranges: Parameters<EventStoreDbReader['readStreams']>[0],
  ): AsyncIterable<StoredEvent[]> {
    await this.assertOurs();
    yield* this.reader.readStreams(ranges);
  }

  override async *readFacts(streams: string[], until: Position): AsyncIterable<StoredEvent[]> {
    yield* this.readStreams(streams.map((stream) => ({ stream, to: Infinity, until })));
  }

  override async readEvents(refs: EventRef[]): Promise<StoredEvent[]> {
    await this.assertOurs();
    return this.reader.readEvents(refs);
  }

  override async isUnused(stream: string): Promise<boolean> {
    await this.assertOurs();
    return this.reader.isUnused(stream);
  }

  override async isProjected(stream: string, revision: number): Promise<boolean> {
    const next = revision + 1;
    for await (const _ of this.readStream(stream, { from: next, to: next })) return false;
    return true;
  }

  override waitUntilProjected(events: StoredEvent[]): Promise<void> {
    return this.catchUp.waitUntilProjected(events);
  }

  override waitUntilComplete(streams: string[]): Promise<void> {
    return waitUntilComplete(this.pool, streams);
  }

  override async maintain(signal: AbortSignal): Promise<void> {
    await Promise.all([this.catchUp.run(signal), new DamageCheck(this).run(signal)]);
  }

  override async assertNoneWaitsForRepair(streams: string[]): Promise<void> {
    await assertNoneWaitsForRepair(this.pool, streams);
  }

  override async describeDamage(): Promise<Damage> {
    await this.foreignEvents.readBeginnings((name) => this.reader.readBeginning(name));
    return this.foreignEvents.describe(await findDamaged(this.pool));
  }

  override measure(): Promise<LogMeasures> {
    return measureEventStoreDbLog(this.pool, this);
  }

  override countDamage(): DamageCounts {
    return this.foreignEvents.count();
  }

  /** Finds an event by the table of the history. An event that is not there yet is near the end of its stream. */
  override async findEvent(stream: string, id: string): Promise<StoredEvent | undefined> {
    const place = await findPlace(this.pool, id);
    if (place && place.stream !== stream) return undefined;
    const [event] = place ? await this.readEvents([place]) : [];
    return event?.id === id ? event : super.findEvent(stream, id);
  }

  override async readAll(after: Position, limit: number): Promise<StoredEvent[]> {
    await this.assertOurs();
    return this.reader.readAll(after, limit);
  }

  override async head(): Promise<Position> {
    await this.assertOurs();
    return this.reader.readHead();
  }

  override get isReachable(): boolean {
    return this.watch.isReachable;
  }

  override describeOverload(): string {
    return this.isReachable
      ? 'The event store responds too slowly'
      : 'The event store cannot be reached';
  }

  override async subscribe(subscriber: Subscriber): Promise<void> {
    await this.watch.waitUntilOpen(subscriber.signal);
    await this.subscription.run(subscriber);
  }

  /** @throws UnavailableError */
  private async assertOurs(): Promise<void> {
    if (!this.isOurs) await this.watch.assertOpen();
  }

  private async commitOne(commit: Commit): Promise<Head[]> {
    const [write] = commit.writes;
    if (!write) throw new Error('a commit writes something');
    const { stream, row } = write;
    if (write.expected === null) await this.assertHead(write);
    const head = await this.appender.append(write);
    if (row) {
      const update = { accountId: commit.accountId, stream, head, row };
      await this.writeReadModel(() => this.rowWriter.write(update));
    }
    return [head];
  }

  private async commitIntent(intent: Intent): Promise<Head[]> {
    await this.intentGroups.open(await sealIntent(this.keys, intent));
    const [first, ...rest] = intent.content.writes;
    if (!first) throw new Error('a commit writes something');
    try {
      // Nothing may fail after the first append, so the other streams are checked before it.
      const unchecked = first.expected === null ? [first, ...rest] : rest;
      await Promise.all(unchecked.map((write) => this.assertHead(write)));
      await this.appender.append(first);
    } catch (error) {
      if (error instanceof UnknownOutcomeError) throw error;
      // An intent that stayed would be retried forever.
      if (!(await this.isDoneByAnother(intent, first))) throw error;
      return getHeadsAfter(intent.content);
    }
    const appended = await this.appendRest(intent, first, rest);
    const close = () => this.closeAppended(intent, appended);
    if (intent.content.erasures ?? intent.content.sideEffects)
      await retryWhileUnknown(close, { isUnknown: true });
    else await this.writeReadModel(close);
    return getHeadsAfter(intent.content);
  }

  private assertHead(write: Write): Promise<void> {
    return assertHead(this.reader, this.callbacks, write);
  }

  /**
   * Appends the writes after the first one.
   * @throws UnknownOutcomeError also when somebody else has damaged a stream: the rest waits for its repair then
   */
  private async appendRest(intent: Intent, first: Write, rest: Write[]): Promise<Write[]> {
    try {
      return await this.remainingWrites.append(first, rest);
    } catch (error) {
      if (!(error instanceof DamagedHistoryError)) throw error;
      await retryWhileUnknown(() => setDamaged(this.pool, intent, error), { isUnknown: true });
      const reason = getErrorMessage(error.cause);
      throw new UnknownOutcomeError(`the rest of a commit waits for a repair: ${reason}`);
    }
  }

  /** Closes an intent whose events are appended. Projects read models that another process has changed meanwhile. */
  private async closeAppended(intent: Intent, writes: Write[]): Promise<void> {
    for (const [i, { stream, row }] of writes.entries()) {
      if (!row && intent.content.writes[i]?.row) await this.callbacks?.catchUp(stream);
    }
    await this.intentGroups.close({ ...intent, content: { ...intent.content, writes } });
  }

  /**
   * Abandons an intent of which this process has appended nothing. If the process was paused for longer than its lease,
   * another one may have executed the intent, and its events caused the conflict here.
   * @throws UnknownOutcomeError when it can neither be abandoned nor is settled otherwise: it may be executed later
   */
  private async isDoneByAnother(intent: Intent, first: Write): Promise<boolean> {
    const abandon = async () => {
      const result = await abandonIntent(this.pool, intent);
      if (result === 'taken') throw new Error('another process executes the intent');
      return result === 'gone' && (await isAppended(this.reader, first));
    };
    return retryWhileUnknown(abandon, { isUnknown: true, isUnknownAfter: () => true });
  }

  /**
   * Opens one intent. Repeats that after a lost response, which leaves open whether the intent exists; opening it again
   * does no harm.
   */
  private async openAlone(sealed: Intent, isUnknown: boolean): Promise<void> {
    const open = () => openIntent(this.pool, sealed, this.leaseHolder);
    const names = listCapNames(sealed.cap);
    await this.caps.runExclusively(names, () => retryWhileUnknown(open, { isUnknown }));
  }

  /**
   * Writes a read model whose events are appended, so nothing may fail any more. If it cannot be written now, its next
   * load, the catch-up or the process that finishes the intent writes it.
   */
  private async writeReadModel(write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      this.log.warn(`a read model lags behind its stream for now: ${getErrorMessage(error)}`);
    }
  }

  private get leaseHolder(): number | null {
    return this.session?.leaseHolder ?? null;
  }
}
