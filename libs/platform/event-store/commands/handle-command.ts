import { AsyncResource } from 'node:async_hooks';
import { Injectable } from '@nestjs/common';
import { context, type Context } from '@opentelemetry/api';
import type { DomainEvent } from '#platform/kernel/aggregate.js';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { runInSpan } from '#platform/kernel/tracing.js';
import {
  ConflictError,
  EventStore,
  KeyTakenOverError,
  type Commit,
  type Head,
  type Precondition,
  type SealedResponse,
  type Write,
} from '../port/event-store.js';
import {
  assertOutsideTransaction,
  createSharedWait,
  findWait,
  runAsCommit,
  runWithWait,
} from '#platform/database/database-waits.js';
import type { CommandPlan } from './command-plan.js';
import {
  CommandDecider,
  MAX_COMMIT_BYTES,
  type CommitExtras,
  type DecidedCommand,
  type LoadedState,
  type PendingCommand,
} from './decide-command.js';
import { createContentionError, Lanes, RETRY_WITHIN_MS } from './lane.js';
import { StoredResponses } from './stored-responses.js';
import { PersonalKeys } from '../personal-keys/personal-keys.js';
import { getResultLabel, PipelineMetrics } from './pipeline-metrics.js';
import { ReadModels, toStreamName, type CachedReadModel } from '../read-models/read-models.js';

/** Number of races lost in a row after which the record itself is suspected to be the cause. */
const SUSPICIOUS_LOSSES = 3;
/**
 * Maximum number of active streams for which cached read models are used. With more, loading them together costs less
 * than checking cached ones in each commit.
 */
const MAX_LANES_FOR_CACHE = 32;

/**
 * Commands that are committed together. Each was decided on the state that the one before leads to.
 * @property extras of its only command: a command with any is committed alone
 * @property bytes the size of all its events as JSON
 */
type CommitGroup = {
  members: DecidedCommand[];
  writes: Write[];
  extras: CommitExtras;
  responses: SealedResponse[];
  bytes: number;
};

/**
 * The progress of a batch of commands for one stream: the state is the one after those that were decided so far, and the
 * head of the stream is the one after the last commit.
 * @property isNewest no event of the stream is missing in the state
 * @property precondition of the cached read model, if that is used
 * @property group the commands that are decided and not committed yet
 */
type BatchRun = LoadedState & {
  stream: string;
  isNewest: boolean;
  precondition: Precondition | undefined;
  remaining: PendingCommand[];
  group: CommitGroup | undefined;
};

/**
 * Runs commands: load, decide, commit, respond. Streams change in no other way (ADR-0004). Commands for one stream wait in its lane;
 * those that wait during an append are decided one after another and appended as one batch, and a refused one affects only
 * its own caller. After a race lost to another process, commands start again from the load.
 */
@Injectable()
export class CommandPipeline {
  private readonly lanes = new Lanes<PendingCommand>({
    run: (stream, batch, losses) => {
      // The end of a batch starts the next one, which is of other requests.
      const wait = createSharedWait(batch.map((pending) => pending.wait));
      const work = () => void this.runBatch(stream, batch, losses);
      batch[0]?.caller.runInAsyncScope(runWithWait, undefined, wait, work);
    },
    describeOverload: () => this.eventStore.describeOverload(),
  });

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
   * Runs a command in the lane of its stream.
   * @throws UnavailableError when other processes won every race for ten seconds
   */
  handleCommand<S extends { accountId: number }, E extends DomainEvent, I, R>(
    command: CommandPlan<S, E, I, R>,
  ): Promise<R> {
    return new Promise((resolve, reject) => {
      const since = performance.now();
      assertOutsideTransaction();
      const pending = {
        command,
        since,
        trace: context.active(),
        wait: findWait(),
        caller: new AsyncResource('command'),
        resolve,
        reject,
      };
      this.lanes.add(
        toStreamName(command.readModel, command.id),
        pending as unknown as PendingCommand,
      );
    });
  }

  /**
   * Runs work while no command of this process writes these streams. Other processes may write to them: the work
   * expects their heads.
   */
  runExclusively<R>(
    streams: string[],
    work: () => Promise<R>,
    options: { since: number; isRetry: boolean },
  ): Promise<R> {
    return this.lanes.runExclusively(streams, work, options);
  }

  /**
   * Commits, and calls `onCommitted` before anything else runs.
   * @param commands number of commands in it
   * @param trace of the first of them
   */
  async commit<R>(
    commit: Commit,
    onCommitted: (heads: Head[]) => R,
    commands = 1,
    trace: Context = context.active(),
  ): Promise<R> {
    const { writes } = commit;
    const startedAt = performance.now();
    let result = 'committed';
    try {
      const heads = await runInSpan(
        'commit',
        { 'inkpad.commands': commands },
        (span) => {
          // The ids let operators find what is sent about these events.
          if (span.isRecording()) {
            const ids = writes.flatMap(({ events }) => events.map(({ id }) => toPublicEventId(id)));
            span.setAttribute('inkpad.event_ids', ids);
          }
          return runAsCommit(() => this.eventStore.commit(commit));
        },
        { parent: trace },
      );
      for (const { events } of writes) this.metrics.events.inc(events.length);
      return onCommitted(heads);
    } catch (error) {
      result = getResultLabel(error);
      throw error;
    } finally {
      this.metrics.seconds.observe({ result }, (performance.now() - startedAt) / 1000);
    }
  }

  /**
   * Runs a batch: loads the stream once, decides one command after another, commits groups of them and responds. Waits
   * only for a commit while everything else is cached.
   */
  private async runBatch(stream: string, batch: PendingCommand[], losses: number): Promise<void> {
    const startedAt = performance.now();
    for (const { since } of batch) this.metrics.waits.observe((startedAt - since) / 1000);
    const run: BatchRun = {
      stream,
      isRetry: losses > 0,
      isNewest: false,
      loaded: undefined,
      state: undefined,
      head: null,
      heldKeys: undefined,
      precondition: undefined,
      remaining: batch,
      group: undefined,
    };
    try {
      const isCacheUsed = losses === 0 && this.lanes.size <= MAX_LANES_FOR_CACHE;
      const cached = isCacheUsed ? this.readModels.cache.find(stream) : undefined;
      if (cached) setLoaded(run, cached.row, cached);
      else await this.load(run, losses > 0);
      for (let [next] = run.remaining; next; [next] = run.remaining) {
        const deciding = this.decider.decide(next, run);
        const decided = deciding instanceof Promise ? await deciding : deciding;
        // A rejection, or a command that changes nothing, must be decided on the newest state. A commit would notice that the
        // read model is behind its stream.
        if (!decided.writes && !run.isNewest) {
          run.isNewest = !run.precondition && (await this.isProjected(run));
          if (!run.isNewest) {
            await this.commitGroup(run);
            await this.load(run, true);
            continue;
          }
        }
        if (run.group && !accepts(run.group, decided)) await this.commitGroup(run);
        addToGroup(run, decided);
        if (decided.isAlone) await this.commitGroup(run);
      }
      await this.commitGroup(run);
    } catch (error) {
      if (run.precondition && error instanceof ConflictError) {
        this.readModels.cache.markStale(stream);
      }
      const affected = run.group?.members.map(({ pending }) => pending) ?? [];
      const left = rejectAffected(error, affected, run.remaining);
      if (left.length > 0) {
        await this.lanes.retry(stream, await this.findRetries(left, losses + 1), losses + 1);
        return;
      }
    }
    this.lanes.startNext(stream);
  }

  /** Finds the commands that may start again: those that are not late, unless the record itself makes them lose. */
  private async findRetries(left: PendingCommand[], losses: number): Promise<PendingCommand[]> {
    const hopeless = losses === SUSPICIOUS_LOSSES ? await this.findCause(left) : undefined;
    const late = performance.now() - RETRY_WITHIN_MS;
    const retry = hopeless === undefined ? left.filter(({ since }) => since > late) : [];
    for (const pending of left) {
      if (!retry.includes(pending)) pending.reject(hopeless ?? createContentionError());
    }
    return retry;
  }

  /** Finds an error of the record itself that makes it lose every race. */
  private findCause([first]: PendingCommand[]): Promise<unknown> | undefined {
    if (!first) return undefined;
    const { readModel, id } = first.command;
    return this.readModels.assertNotAhead(readModel, id).catch((error: unknown) => error);
  }

  private load(run: BatchRun, isNewest: boolean): Promise<void> {
    const [first] = run.remaining;
    if (!first) return Promise.resolve();
    const { readModel, id } = first.command;
    const loading = isNewest
      ? this.readModels.loadCurrent(readModel, id)
      : this.readModels.load(readModel, id);
    return loading.then((loaded) => {
      setLoaded(run, loaded);
      run.isNewest = isNewest;
    });
  }

  private isProjected({ stream, head }: BatchRun): Promise<boolean> {
    return this.eventStore.isProjected(stream, head?.revision ?? -1);
  }

  /** Commits the group, and responds to its members. @returns undefined when there is nothing to commit */
  private commitGroup(run: BatchRun): Promise<void> | undefined {
    const { group } = run;
    const [first] = group?.members ?? [];
    if (!group || !first) return undefined;
    const { members, writes, extras, responses } = group;
    const end = ([head]: Head[]) => {
      const row = writes[0]?.row;
      if (row && head) this.readModels.cache.update(run.stream, row.state, head);
      run.head = head ?? run.head;
      run.group = undefined;
      for (const member of members) {
        const { command, resolve, reject } = member.pending;
        const { keyed } = command.context;
        if (keyed && member.writes?.storedResponse) keyed.isStored = true;
        if ('error' in member) reject(member.error);
        else resolve(member.response);
      }
    };
    if (writes.length === 0) {
      end([]);
      return undefined;
    }
    const { command, trace } = first.pending;
    const { accountId } = command.context;
    return this.commit({ accountId, writes, ...extras, responses }, end, members.length, trace);
  }
}

function setLoaded(
  run: BatchRun,
  loaded: LoadedState['loaded'],
  cached?: CachedReadModel<{ accountId: number }>,
): void {
  run.loaded = loaded;
  run.state = loaded?.state;
  run.head = loaded?.head ?? null;
  run.heldKeys = cached?.keys;
  run.precondition = cached?.precondition;
}

/** Tells whether a command can be committed together with those of the group. */
function accepts({ bytes }: CommitGroup, { isAlone, writes }: DecidedCommand): boolean {
  return !isAlone && bytes + (writes?.bytes ?? 0) <= MAX_COMMIT_BYTES;
}

function addToGroup(run: BatchRun, decided: DecidedCommand): void {
  const { head, precondition } = run;
  const group = (run.group ??= { members: [], writes: [], extras: {}, responses: [], bytes: 0 });
  run.remaining.shift();
  group.members.push(decided);
  if (!decided.writes) return;
  const { state, own, created, extras, storedResponse, bytes } = decided.writes;
  run.state = state;
  const [main] = group.writes;
  if (main) {
    main.events.push(...own.events);
    if (own.row) main.row = own.row;
  } else {
    own.expected = head;
    if (precondition) own.precondition = precondition;
    group.writes.push(own);
  }
  group.writes.push(...created);
  group.extras = extras;
  group.bytes += bytes;
  if (storedResponse) group.responses.push(storedResponse);
}

/** Rejects the commands that an error affects. @returns commands that have to start again */
function rejectAffected(
  error: unknown,
  affected: PendingCommand[],
  remaining: PendingCommand[],
): PendingCommand[] {
  // Last, because one that waits for another process to finish loses every race, and the others need not wait for it.
  if (error instanceof ConflictError) return [...remaining, ...affected];
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
