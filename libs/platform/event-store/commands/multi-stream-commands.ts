import { Injectable } from '@nestjs/common';
import type { CommandContext, DomainEvent } from '#platform/kernel/aggregate.js';
import { CapReachedError } from '../port/caps.js';
import {
  ClaimTakenError,
  ConflictError,
  EventStore,
  type Cap,
  type Claim,
  type Erasure,
  type Json,
  type Write,
} from '../port/event-store.js';
import { createMeta, createWrite, getBoundedBytes, getDecisionTime } from './decide-command.js';
import { CommandPipeline } from './handle-command.js';
import { PersonalKeys } from '../personal-keys/personal-keys.js';
import {
  ReadModels,
  toStreamName,
  type ReadModel,
  type AnyReadModel,
} from '../read-models/read-models.js';
import { StoredResponses } from './stored-responses.js';
import { backOff, createContentionError, RETRY_WITHIN_MS } from './lane.js';

/** A record that the command may change. */
export type StreamRef = { readModel: AnyReadModel; id: number };

export function toStreamRef<S extends { accountId: number }, E extends DomainEvent>(
  readModel: ReadModel<S, E>,
  id: number,
): StreamRef {
  return { readModel: readModel as unknown as AnyReadModel, id };
}

/** The events of one record. @property inputs of its `FollowUp`, besides the state and the parts before */
export type StreamDecision = StreamRef & { events: DomainEvent[]; inputs?: Json };

/** Ties events to their aggregate, so that the compiler checks the pair. */
export function toStreamDecision<S extends { accountId: number }, E extends DomainEvent>(
  readModel: ReadModel<S, E>,
  id: number,
  events: E[],
  inputs?: Json,
): StreamDecision {
  return { ...toStreamRef(readModel, id), events, ...(inputs !== undefined && { inputs }) };
}

export type MultiStreamDecision = {
  /** The first decides everything that the others follow from. */
  streamDecisions: StreamDecision[];
  claims?: Claim[];
  releases?: Claim[];
  cap?: Cap;
  erasures?: Erasure[];
};

/** Finds the state of a record of the command; undefined when it does not exist. */
export type FindState = <S extends { accountId: number }, E extends DomainEvent>(
  readModel: ReadModel<S, E>,
  id: number,
) => S | undefined;

/** A command that changes several records at once, all of which exist. */
export type MultiStreamPlan<I, R> = {
  context: CommandContext;
  /**
   * Loads what the decision needs, before each try.
   * @property streams all records that the decision may need or change
   */
  load: () => Promise<I & { streams: StreamRef[] }>;
  /**
   * Decides without side effects.
   * @throws ConflictError when the loaded values are outdated: everything is loaded again
   */
  decide: (findState: FindState, inputs: I, now: Date) => MultiStreamDecision;
  /** Builds the response to the caller without side effects, before the commit. */
  respond: (findState: FindState, inputs: I, now: Date) => R;
  /**
   * Kinds of claims and tables of caps. When another stream holds such a claim or such a cap is reached, something has
   * changed meanwhile, and the command is retried.
   */
  retriedKinds: string[];
};

/**
 * Runs commands that change several existing records. All of them are committed or none, in order
 * (`EventStore.commit`). Single commands of this process wait meanwhile; when another process writes to a record, the
 * command starts again.
 */
@Injectable()
export class MultiStreamCommands {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly eventStore: EventStore,
    private readonly readModels: ReadModels,
    private readonly keys: PersonalKeys,
    private readonly responses: StoredResponses,
  ) {}

  /**
   * Runs the command until its commit succeeds.
   * @throws DamagedHistoryError when a commit of one of the records waits for a repair
   * @throws UnavailableError when other commands won every race for ten seconds; then nothing was written
   */
  async handle<I, R>(plan: MultiStreamPlan<I, R>): Promise<R> {
    const since = performance.now();
    for (let losses = 1; ; losses++) {
      const inputs = await plan.load();
      const streams = inputs.streams.map(({ readModel, id }) => toStreamName(readModel, id));
      try {
        return await this.pipeline.runExclusively(streams, () => this.handleOnce(plan, inputs), {
          since,
          isRetry: losses > 1,
        });
      } catch (error) {
        if (!isLostRace(error, plan.retriedKinds)) throw error;
        // While only a part of a commit is written, every race with it is lost.
        await this.eventStore.assertNoneWaitsForRepair(streams);
        if (performance.now() > since + RETRY_WITHIN_MS) throw createContentionError();
      }
      await backOff(losses);
    }
  }

  private async handleOnce<I, R>(
    plan: MultiStreamPlan<I, R>,
    inputs: I & { streams: StreamRef[] },
  ): Promise<R> {
    const { keyed } = plan.context;
    const loaded = await this.loadStreams(inputs.streams);
    const states = new Map([...loaded].map(([stream, projection]) => [stream, projection.state]));
    const findState = ((readModel: AnyReadModel, id: number) =>
      states.get(toStreamName(readModel, id))) as FindState;
    const now = getDecisionTime(states.values());
    const { streamDecisions, ...extras } = plan.decide(findState, inputs, now);
    const meta = createMeta(plan.context, now);
    const writes: Write[] = [];
    for (const { readModel, id, events, ...part } of streamDecisions) {
      const stream = toStreamName(readModel, id);
      const current = loaded.get(stream);
      if (!current) throw new Error(`${stream} does not exist yet`);
      const { state, write } = createWrite({ readModel, id }, current, events, meta);
      states.set(stream, state);
      write.events = await this.keys.sealEvents(write.events);
      writes.push({ ...write, ...part });
    }
    getBoundedBytes(writes);
    const response = plan.respond(findState, inputs, now);
    if (keyed) keyed.subjectId ??= this.keys.subjects.find(writes.flatMap((write) => write.events));
    const storedResponse =
      keyed && (await this.responses.seal(keyed, writes[0]?.stream ?? '', response));
    const { accountId } = plan.context;
    const responses = storedResponse ? [storedResponse] : [];
    return this.pipeline.commit({ accountId, writes, ...extras, responses }, () => {
      // A record may belong to another person from now on, whose key is not the cached one.
      for (const { stream } of writes) this.readModels.cache.delete(stream);
      if (keyed) keyed.isStored = true;
      return response;
    });
  }

  private async loadStreams(refs: StreamRef[]) {
    const loadedStreams = await Promise.all(
      refs.map(async ({ readModel, id }) => ({
        stream: toStreamName(readModel, id),
        loaded: await this.readModels.loadCurrent(readModel, id),
      })),
    );
    return new Map(
      loadedStreams.flatMap(({ stream, loaded }) => (loaded ? [[stream, loaded]] : [])),
    );
  }
}

function isLostRace(error: unknown, retriedKinds: string[]): boolean {
  if (error instanceof ClaimTakenError)
    return error.kinds.every((kind) => retriedKinds.includes(kind));
  if (error instanceof CapReachedError) return retriedKinds.includes(error.kind.table);
  return error instanceof ConflictError;
}
