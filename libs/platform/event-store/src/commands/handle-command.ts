import { Injectable } from '@nestjs/common';
import type { DomainEvent } from '#kernel/aggregate.js';
import { UnavailableError } from '#kernel/errors.js';
import { toPublicEventId } from '#kernel/public-id.js';
import { context, runInSpan } from '#kernel/tracing.js';
import {
  ConflictError,
  EventStore,
  KeyTakenOverError,
  type Head,
  type Write,
} from '../port/event-store.js';
import type { CommandPlan } from './command-plan.js';
import { CommandDecider, type DecidedCommand, type PendingCommand } from './command-decider.js';
import { CommitGroup } from './commit-group.js';
import { StoredResponses } from './stored-responses.js';
import { PersonalKeys } from '../personal-keys/personal-keys.js';
import { PipelineMetrics } from './pipeline-metrics.js';
import {
  ReadModels,
  toStreamName,
  type AnyReadModel,
  type CachedReadModel,
  type LoadedReadModel,
} from '../read-models/read-models.js';
import { StreamQueues, TURN_WITHIN_MS, type Turn } from './stream-queues.js';

export const RETRY_WITHIN_MS = 10_000;
/** Number of races lost in a row after which the record itself is suspected to be the cause. */
const SUSPICIOUS_LOSSES = 3;
/**
 * Maximum number of active streams for which cached read models are used. With more, loading them together costs less
 * than checking cached ones in each commit.
 */
const MAX_QUEUES_FOR_CACHE = 32;

/** Creates the error of a command that lost every race to other processes. */
export function createContentionError(): UnavailableError {
  return new UnavailableError('Too many others are changing this record right now');
}

/** The progress of a batch of commands for one stream. */
type BatchRun = {
  stream: string;
  readModel: AnyReadModel;
  id: number;
  /** Whether the stream itself is read, not only its read model. */
  isFresh: boolean;
  cached: CachedReadModel<{ accountId: number }> | undefined;
  loaded: LoadedReadModel<{ accountId: number }> | undefined;
  /** The state after the commands that were decided so far. */
  state: { accountId: number } | undefined;
  /** The head of the stream after the last commit. */
  head: Write['expected'];
  remaining: PendingCommand[];
  /** The commands that are decided and not committed yet. */
  group: CommitGroup;
};

/**
 * Runs commands: load, decide, commit, respond. Streams change in no other way. Commands for one stream queue up; those
 * that wait during an append are decided one after another and appended as one batch, and a refused one affects only
 * its own caller. After a race lost to another process, commands start again from the load.
 */
@Injectable()
export class CommandPipeline {
  private readonly queues = new StreamQueues<PendingCommand>(
    (stream, batch, losses) => this.takeTurn(stream, batch, losses),
    {
      isLate: ({ since }) => since < performance.now() - TURN_WITHIN_MS,
      refuse: ({ reject }) => reject(new UnavailableError(this.eventStore.describeOverload())),
    },
  );

  private readonly decider: CommandDecider;

  constructor(
    private readonly eventStore: EventStore,
    private readonly readModels: ReadModels,
    keys: PersonalKeys,
    responses: StoredResponses,
    private readonly metrics: PipelineMetrics,
  ) {
    this.decider = new CommandDecider(eventStore, keys, responses);
  }

  /**
   * Runs a command in the queue of its stream.
   * @throws UnavailableError when other processes won every race for ten seconds
   */
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
      } as unknown as PendingCommand;
      this.queues.add(toStreamName(command.readModel.aggregate, command.id), pending);
    });
  }

  /**
   * Runs work while no command of this process writes these streams. Other processes may write to them: the work
   * expects their heads.
   */
  runExclusively<R>(streams: string[], work: () => Promise<R>): Promise<R> {
    return this.queues.runExclusively(streams, work);
  }

  private async takeTurn(
    stream: string,
    batch: PendingCommand[],
    lossesBefore: number,
  ): Promise<Turn<PendingCommand>> {
    for (const { since } of batch) this.metrics.observeWait(performance.now() - since);
    const left = await this.runBatch(stream, batch, lossesBefore > 0);
    const losses = left.length > 0 ? lossesBefore + 1 : 0;
    const hopeless = losses === SUSPICIOUS_LOSSES ? await this.findCause(left) : undefined;
    const late = performance.now() - RETRY_WITHIN_MS;
    const again = hopeless === undefined ? left.filter(({ since }) => since > late) : [];
    for (const pending of left) {
      if (!again.includes(pending)) pending.reject(hopeless ?? createContentionError());
    }
    return { retry: again, isRaceLost: losses > 0 };
  }

  /** Finds an error of the record itself that makes it lose every race. */
  private findCause([first]: PendingCommand[]): Promise<unknown> | undefined {
    if (!first) return undefined;
    const { readModel, id } = first.command;
    return this.readModels.assertNotAhead(readModel, id).catch((error: unknown) => error);
  }

  /**
   * Runs a batch: loads the stream once, decides one command after another, commits groups of them and responds.
   * @returns commands that have to start again
   */
  private async runBatch(
    stream: string,
    batch: PendingCommand[],
    isFresh: boolean,
  ): Promise<PendingCommand[]> {
    const [first] = batch;
    if (!first) return [];
    const run = createRun(stream, batch, first, isFresh);
    try {
      await this.load(run);
      for (let [next] = run.remaining; next; [next] = run.remaining) {
        const decided = await this.decide(run, next);
        if (!decided.writes && this.mayBeOutdated(run)) {
          // A refusal, or a command that changes nothing, must be decided on the newest state.
          await this.commitAndRespond(run);
          return await this.runBatch(stream, run.remaining, true);
        }
        if (!run.group.accepts(decided)) await this.commitAndRespond(run);
        this.addToGroup(run, next, decided);
        if (decided.isAlone) await this.commitAndRespond(run);
      }
      await this.commitAndRespond(run);
      this.cacheResult(run);
      return [];
    } catch (error) {
      if (run.cached && error instanceof ConflictError) {
        this.readModels.markStale(run.readModel, run.id);
      }
      const affected = run.group.members.map(({ pending }) => pending);
      return handleFailure(error, affected, run.remaining);
    }
  }

  private async load(run: BatchRun): Promise<void> {
    const { readModel, id, isFresh } = run;
    const mayUseCache = !isFresh && this.queues.size <= MAX_QUEUES_FOR_CACHE;
    run.cached = mayUseCache ? await this.readModels.findCached(readModel, id) : undefined;
    run.loaded = run.cached?.row ?? (await this.readModels.load(readModel, id, isFresh));
    run.state = run.loaded?.state;
    run.head = run.loaded?.head ?? null;
  }

  private decide(run: BatchRun, pending: PendingCommand): Promise<DecidedCommand> {
    const { loaded, state, head, isFresh, cached } = run;
    return this.decider.decide(pending, {
      loaded: loaded && { ...loaded, head: head ?? loaded.head },
      state,
      isFresh,
      heldKeys: cached?.keys,
    });
  }

  /** Tells whether the read model may be behind its stream. A commit would notice that, but a refusal would not. */
  private mayBeOutdated({ isFresh, cached }: BatchRun): boolean {
    return !isFresh && (cached !== undefined || this.eventStore.readModelsMayLag);
  }

  private addToGroup(run: BatchRun, pending: PendingCommand, decided: DecidedCommand): void {
    const { stream, head, cached } = run;
    const precondition = cached && { precondition: cached.precondition };
    run.remaining = run.remaining.slice(1);
    run.group.add(pending, decided, { stream, expected: head, ...precondition });
    if (decided.writes) run.state = decided.writes.state;
  }

  /** Commits the group, then responds to its members and starts a new group. */
  private async commitAndRespond(run: BatchRun): Promise<void> {
    const { group } = run;
    if (group.writes.length > 0) run.head = (await this.commit(group)) ?? run.head;
    run.group = new CommitGroup();
    for (const member of group.members) member.respond();
  }

  /**
   * Commits a group of commands.
   * @returns the new head of the stream
   */
  private async commit({
    members,
    writes,
    extras,
    responses,
  }: CommitGroup): Promise<Head | undefined> {
    const [member] = members;
    const accountId = member?.pending.command.context.accountId ?? 0;
    const events = writes.flatMap((write) => write.events);
    const heads = await runInSpan(
      'commit',
      { 'inkpad.commands': members.length },
      (span) => {
        // The ids let operators find what is sent about these events.
        if (span.isRecording()) {
          span.setAttribute(
            'inkpad.event_ids',
            events.map(({ id }) => toPublicEventId(id)),
          );
        }
        return this.metrics.measureCommit(events.length, () =>
          this.eventStore.commit({ accountId, writes, ...extras, responses }),
        );
      },
      // Several commands may be committed at once; the span belongs to the trace of the first.
      member && { parent: member.pending.trace },
    );
    return heads[0];
  }

  private cacheResult({ readModel, id, loaded, state, head }: BatchRun): void {
    if (!loaded || !state || !head) return;
    this.readModels.cacheCommitted(readModel, id, { ...loaded, state, head });
  }
}

function createRun(
  stream: string,
  batch: PendingCommand[],
  { command: { readModel, id } }: PendingCommand,
  isFresh: boolean,
): BatchRun {
  return {
    stream,
    readModel,
    id,
    isFresh,
    cached: undefined,
    loaded: undefined,
    state: undefined,
    head: null,
    remaining: batch,
    group: new CommitGroup(),
  };
}

/** Rejects the commands that an error affects. @returns commands that have to start again */
function handleFailure(
  error: unknown,
  affected: PendingCommand[],
  remaining: PendingCommand[],
): PendingCommand[] {
  if (error instanceof ConflictError) return [...affected, ...remaining];
  if (error instanceof KeyTakenOverError) {
    const lost = new Set(error.holders);
    const mayRespond = ({ command: { context } }: PendingCommand) =>
      !context.keyed || !lost.has(context.keyed.holder);
    for (const pending of affected) if (!mayRespond(pending)) pending.reject(error);
    return [...affected.filter(mayRespond), ...remaining];
  }
  // The commands after a failed one have not been decided yet, so only its own segment gets the error.
  for (const pending of affected.length > 0 ? affected : remaining) pending.reject(error);
  return affected.length > 0 ? remaining : [];
}
