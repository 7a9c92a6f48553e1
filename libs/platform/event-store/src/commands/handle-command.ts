import { Injectable } from '@nestjs/common';
import type { DomainEvent, EventMeta } from '#kernel/aggregate.js';
import { NotFoundError, UnavailableError } from '#kernel/errors.js';
import { toPublicEventId } from '#kernel/public-id.js';
import { IdTakenError } from '#database/ids.js';
import { context, runInSpan, type Context } from '#kernel/tracing.js';
import {
  ConflictError,
  EventStore,
  KeyTakenOverError,
  type Commit,
  type NewEvent,
  type SealedResponse,
  type Write,
} from '../port/event-store.js';
import type { CommandPlan, Decision, NewStream } from './command-plan.js';
import {
  getBoundedBytes,
  project,
  createMeta,
  MAX_COMMIT_BYTES,
  toNewEvent,
  toReadModelWrite,
} from './decided-events.js';
import { StoredResponses } from './stored-responses.js';
import { PersonalKeys } from '../personal-keys/personal-keys.js';
import type { PersonalKey } from '../personal-keys/personal-parts.js';
import { PipelineMetrics } from './pipeline-metrics.js';
import { ReadModels, toStreamName, type Loaded } from '../read-models/read-models.js';
import { StreamQueues, TURN_WITHIN_MS, type Turn } from './stream-queues.js';

export const RETRY_WITHIN_MS = 10_000;
/** After losing this often in a row, it may not be a race at all. */
const SUSPICIOUS_LOSSES = 3;
/** With more under way, loading rows together costs less than it costs their commits to look whether they are the same. */
const MAX_QUEUES_FOR_CACHE = 32;

/** For a command that other processes have won every race against. */
export function createContentionError(): UnavailableError {
  return new UnavailableError('Too many others are changing this record right now');
}

type Pending = {
  command: CommandPlan<{ accountId: number }, DomainEvent, unknown, unknown>;
  since: number;
  /** The trace of the request. */
  trace: Context;
  resolve: (response: unknown) => void;
  reject: (error: unknown) => void;
};

/** What a commit does besides its writes. */
type Beside = Pick<Commit, 'claims' | 'releases' | 'cap' | 'erasures' | 'sideEffects'>;

type Writes = {
  state: { accountId: number };
  events: NewEvent[];
  begun: Write[];
  beside: Beside;
  response: SealedResponse | undefined;
  /** The size of all its events as JSON. */
  bytes: number;
};

/** The outcome of a decision. Without writes, the command was refused or nothing had to change. */
type Decided = { settle: () => void; alone: boolean; writes?: Writes };

/** Commands decided one after another, each on the state that the previous one leads to, and committed together. */
type Segment = {
  writes: Write[];
  /** Of its only command: one that does anything besides is committed alone. */
  beside: Beside;
  responses: SealedResponse[];
  /** The size of its events as JSON. */
  bytes: number;
  members: { pending: Pending; settle: () => void }[];
};

/**
 * The only way in which streams change: load, decide, commit. Commands for one stream queue up; those that wait during
 * an append are decided one after another and appended as one batch, and a refused one affects only its own caller.
 * After a race lost to another process, its commands start again from the load.
 */
@Injectable()
export class CommandPipeline {
  private readonly queues = new StreamQueues<Pending>(
    (stream, batch, losses) => this.takeTurn(stream, batch, losses),
    {
      isLate: ({ since }) => since < performance.now() - TURN_WITHIN_MS,
      refuse: ({ reject }) => reject(new UnavailableError('The database is too busy')),
    },
  );

  constructor(
    private readonly eventStore: EventStore,
    private readonly readModels: ReadModels,
    private readonly keys: PersonalKeys,
    private readonly responses: StoredResponses,
    private readonly metrics: PipelineMetrics,
  ) {}

  /** @throws UnavailableError when other processes won every race for ten seconds */
  handleCommand<S extends { accountId: number }, E extends DomainEvent, G, A>(
    command: CommandPlan<S, E, G, A>,
  ): Promise<A> {
    return new Promise((resolve, reject) => {
      const trace = context.active();
      const pending = {
        command,
        since: performance.now(),
        trace,
        resolve,
        reject,
      } as unknown as Pending;
      this.queues.add(toStreamName(command.readModel.aggregate, command.id), pending);
    });
  }

  /**
   * Does the work while no command of this process writes these streams. Other processes may: the work expects their
   * heads.
   */
  runExclusively<R>(streams: string[], work: () => Promise<R>): Promise<R> {
    return this.queues.runExclusively(streams, work);
  }

  private async takeTurn(
    stream: string,
    batch: Pending[],
    lossesBefore: number,
  ): Promise<Turn<Pending>> {
    for (const { since } of batch) this.metrics.observeWait(performance.now() - since);
    const left = await this.runBatch(stream, batch, lossesBefore > 0);
    const losses = left.length > 0 ? lossesBefore + 1 : 0;
    const hopeless = losses === SUSPICIOUS_LOSSES ? await this.faultOf(left) : undefined;
    const late = performance.now() - RETRY_WITHIN_MS;
    const again = hopeless === undefined ? left.filter(({ since }) => since > late) : [];
    for (const pending of left) {
      if (!again.includes(pending)) pending.reject(hopeless ?? createContentionError());
    }
    return { retry: again, isRaceLost: losses > 0 };
  }

  /** A fault of the record itself, if that is why every race is lost. */
  private faultOf([first]: Pending[]): Promise<unknown> | undefined {
    if (!first) return undefined;
    const { readModel, id } = first.command;
    return this.readModels.assertNotAhead(readModel, id).catch((error: unknown) => error);
  }

  /**
   * Answers every member of the batch except those that have to start again, which it returns.
   * @param fresh whether to look at the stream itself and not only at its row
   */
  private async runBatch(stream: string, batch: Pending[], fresh: boolean): Promise<Pending[]> {
    const [first] = batch;
    if (!first) return [];
    const { readModel, id } = first.command;
    let open: Segment = newSegment();
    let remaining = batch;
    const isKept = !fresh && this.queues.size <= MAX_QUEUES_FOR_CACHE;
    const kept = isKept ? await this.readModels.findCached(readModel, id) : undefined;
    try {
      const loaded = kept?.row ?? (await this.readModels.load(readModel, id, fresh));
      const precondition = kept && { precondition: kept.precondition };
      const doubtful = (kept !== undefined || this.eventStore.readModelsMayLag) && !fresh;
      let state = loaded?.state;
      let head = loaded?.head ?? null;
      for (let [pending] = remaining; pending; [pending] = remaining) {
        const current = loaded && { ...loaded, head: head ?? loaded.head };
        const decided = await this.decide(pending, current, state, { fresh, held: kept?.keys });
        if (doubtful && !decided.writes) {
          // Refused, or nothing to do. That must be decided on what is so now, because the row may be behind.
          await this.commit(open, head);
          return await this.runBatch(stream, remaining, true);
        }
        const bytes = decided.writes?.bytes ?? 0;
        const fits = open.bytes + bytes <= MAX_COMMIT_BYTES;
        if ((decided.alone || !fits) && open.members.length > 0) {
          head = await this.commit(open, head);
          open = newSegment();
        }
        remaining = remaining.slice(1);
        open.members.push({ pending, settle: decided.settle });
        if (decided.writes) {
          state = decided.writes.state;
          add(open, { stream, expected: head, ...precondition }, pending, decided.writes);
        }
        if (decided.alone) {
          head = await this.commit(open, head);
          open = newSegment();
        }
      }
      head = await this.commit(open, head);
      if (loaded && state && head)
        this.readModels.cacheCommitted(readModel, id, { ...loaded, state, head });
      return [];
    } catch (error) {
      const affected = open.members.map((member) => member.pending);
      if (kept && error instanceof ConflictError) this.readModels.markStale(readModel, id);
      return afterFailure(error, affected, remaining);
    }
  }

  /** Decides one command on this state. Whatever it throws goes to its own caller only. */
  private async decide(
    pending: Pending,
    loaded: Loaded<{ accountId: number }> | undefined,
    state: { accountId: number } | undefined,
    { fresh, held }: { fresh: boolean; held: Map<number, PersonalKey> | undefined },
  ): Promise<Decided> {
    const { command } = pending;
    try {
      if (state && command.isNew) throw new IdTakenError(command.readModel.table, command.id);
      if (state && state.accountId !== command.context.accountId) throw new NotFoundError('Record');
      const { context } = command;
      const { keyed, dryRun } = context;
      if (keyed) keyed.subjectId = loaded?.subjectId ?? keyed.subjectId;
      const given = await command.load(loaded && state ? { ...loaded, state } : undefined);
      if (loaded?.isErased && !command.evenErased) throw this.keys.subjects.createErasedError();
      const now = new Date();
      const answer = command.decide(state, given, now);
      const decision: Decision<DomainEvent> = Array.isArray(answer) ? { events: answer } : answer;
      const { events: _, newStreams = [], ...beside } = decision;
      const alone = newStreams.length > 0 || isAnything(beside);
      const meta = createMeta(context, now, command.occurredAt);
      const main = project(command.readModel, state, decision.events, meta);
      const { state: after } = main;
      if (!after) throw new NotFoundError('Record');
      if (fresh || this.eventStore.readModelsMayLag) await this.refuseBegun(newStreams);
      const { begun, states } = await this.begin(newStreams, meta);
      const told = command.respond({
        state: after,
        events: main.recorded,
        inputs: given,
        now,
        findNewState: <T>({ table }: { table: string }) => states.get(table) as T | undefined,
      });
      const events = await this.keys.sealEvents(
        main.recorded.map((fact) => toNewEvent(command.readModel, fact)),
        held,
      );
      const bytes = getBoundedBytes([...events, ...begun.flatMap((write) => write.events)]);
      if (dryRun) return { settle: () => pending.resolve(told), alone: false };
      if (main.recorded.length === 0) {
        if (alone) throw new Error('claims and new streams need an event that causes them');
        return { settle: () => pending.resolve(told), alone };
      }
      const stream = toStreamName(command.readModel.aggregate, command.id);
      if (keyed) keyed.subjectId ??= this.keys.subjects.find(main.recorded);
      const response = keyed && (await this.responses.seal(keyed, stream, told));
      return {
        settle: () => {
          if (keyed) keyed.isStored = true;
          pending.resolve(told);
        },
        alone,
        writes: { state: after, events, begun, beside, response, bytes },
      };
    } catch (error) {
      return { settle: () => pending.reject(error), alone: false };
    }
  }

  /**
   * A stream that already exists loses every race for its creation; and where rows may lag, that would only be noticed
   * after another part of the commit has been written.
   */
  private async refuseBegun(starts: NewStream[]): Promise<void> {
    for (const { readModel, id } of starts) {
      if (await this.readModels.load(readModel, id, true))
        throw new IdTakenError(readModel.table, id);
    }
  }

  /** The writes that create new streams, and the resulting states by table. */
  private async begin(
    starts: NewStream[],
    meta: EventMeta,
  ): Promise<{ begun: Write[]; states: Map<string, object> }> {
    const begun: Write[] = [];
    const states = new Map<string, object>();
    for (const { readModel, id, events } of starts) {
      const fold = project(readModel, undefined, events, meta);
      if (!fold.state) throw new Error('a new stream needs an event');
      states.set(readModel.table, fold.state);
      begun.push({
        stream: toStreamName(readModel.aggregate, id),
        expected: null,
        events: await this.keys.sealEvents(
          fold.recorded.map((fact) => toNewEvent(readModel, fact)),
        ),
        row: toReadModelWrite({ readModel, id }, fold.state),
      });
    }
    return { begun, states };
  }

  /** Commits the segment, then answers its members. @returns the stream's new head */
  private async commit(segment: Segment, head: Write['expected']): Promise<Write['expected']> {
    let after = head;
    if (segment.writes.length > 0) {
      const [member] = segment.members;
      const { writes, beside, responses } = segment;
      const accountId = member?.pending.command.context.accountId ?? 0;
      const heads = await runInSpan(
        'commit',
        { 'inkpad.commands': segment.members.length },
        (span) => {
          const events = writes.flatMap((write) => write.events);
          // Lets people find what is sent about these events.
          if (span.isRecording()) {
            span.setAttribute(
              'inkpad.event_ids',
              events.map(({ id }) => toPublicEventId(id)),
            );
          }
          return this.metrics.measureCommit(events.length, () =>
            this.eventStore.commit({ accountId, writes, ...beside, responses }),
          );
        },
        // Several commands may be committed at once; the span belongs to the trace of the first.
        member && { parent: member.pending.trace },
      );
      after = heads[0] ?? head;
    }
    for (const member of segment.members) member.settle();
    segment.members = [];
    return after;
  }
}

function add(
  segment: Segment,
  to: Pick<Write, 'stream' | 'expected' | 'precondition'>,
  { command }: Pending,
  { state, events, begun, beside, response, bytes }: Writes,
): void {
  const [main] = segment.writes;
  if (main?.row) {
    main.events.push(...events);
    main.row = toReadModelWrite(command, state);
  } else {
    segment.writes.push({ ...to, events, row: toReadModelWrite(command, state) });
  }
  segment.writes.push(...begun);
  segment.beside = beside;
  segment.bytes += bytes;
  if (response) segment.responses.push(response);
}

/** @returns those who have to start again; of the others, whoever the error affects gets it */
function afterFailure(error: unknown, affected: Pending[], remaining: Pending[]): Pending[] {
  if (error instanceof ConflictError) return [...affected, ...remaining];
  if (error instanceof KeyTakenOverError) {
    const lost = new Set(error.holders);
    const mayAnswer = ({ command: { context } }: Pending) =>
      !context.keyed || !lost.has(context.keyed.holder);
    for (const pending of affected) if (!mayAnswer(pending)) pending.reject(error);
    return [...affected.filter(mayAnswer), ...remaining];
  }
  // The commands after a failed one have not been decided yet, so only its own segment gets the error.
  for (const pending of affected.length > 0 ? affected : remaining) pending.reject(error);
  return affected.length > 0 ? remaining : [];
}

function newSegment(): Segment {
  return { writes: [], beside: {}, responses: [], members: [], bytes: 0 };
}

function isAnything({ cap, ...lists }: Beside): boolean {
  return cap !== undefined || Object.values(lists).some((list) => list.length > 0);
}
