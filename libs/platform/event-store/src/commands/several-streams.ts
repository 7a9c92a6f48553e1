import { Injectable } from '@nestjs/common';
import type { CommandContext, DomainEvent } from '#kernel/aggregate.js';
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
import { boundedBytes, foldOn, metaOf, newEvent, rowOf } from './decided-events.js';
import { CommandPipeline, contended, RETRY_WITHIN_MS } from './handle-command.js';
import { PersonalKeys } from '../personal-keys/personal-keys.js';
import { PipelineMetrics } from './pipeline-metrics.js';
import { Rows, streamOf, type RowTable } from '../read-models/read-models.js';
import { StoredResponses } from './stored-responses.js';
import { backOff } from './stream-queues.js';

type AnyTable = RowTable<{ accountId: number }, DomainEvent>;

/** A record that the command may change. */
export type Participant = { rows: AnyTable; id: number };

export function participant<S extends { accountId: number }, E extends DomainEvent>(
  rows: RowTable<S, E>,
  id: number,
): Participant {
  return { rows: rows as unknown as AnyTable, id };
}

/** The events of one record. `basis` is what `RowTable.again` needs besides its state and the events before. */
export type PartDecision = Participant & { events: DomainEvent[]; basis?: Json };

/** Ties events to their aggregate, so that the compiler checks the pair. */
export function part<S extends { accountId: number }, E extends DomainEvent>(
  rows: RowTable<S, E>,
  id: number,
  events: E[],
  basis?: Json,
): PartDecision {
  return { ...participant(rows, id), events, ...(basis !== undefined && { basis }) };
}

export type OrderedDecision = {
  /** The first carries everything that the others follow from. */
  parts: PartDecision[];
  claims?: Claim[];
  releases?: Claim[];
  cap?: Cap;
  erasures?: Erasure[];
};

/** The state of a participant; undefined when there is no such record. */
export type StateOf = <S extends { accountId: number }, E extends DomainEvent>(
  rows: RowTable<S, E>,
  id: number,
) => S | undefined;

/** A command that changes several records at once, all of which exist. */
export type OrderedPlan<G, A> = {
  context: CommandContext;
  /** Fetched before each try. @property participants whatever the decision may need or change */
  given: () => Promise<G & { participants: Participant[] }>;
  /** Pure. @throws ConflictError when what was given is no longer so: everything is fetched anew */
  decide: (stateOf: StateOf, given: G, now: Date) => OrderedDecision;
  /** Pure. The answer to the caller, made before the commit. */
  answer: (stateOf: StateOf, given: G, now: Date) => A;
  /** A claim of these kinds that another stream holds, or a cap on these tables, means that something has changed meanwhile. */
  racing: string[];
};

/**
 * The pipeline for commands that change several existing records: they are committed all or not at all, in order
 * (`EventStore.commit`). Single commands of this process wait meanwhile; other processes' make it start again.
 */
@Injectable()
export class SeveralStreams {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly store: EventStore,
    private readonly rows: Rows,
    private readonly keys: PersonalKeys,
    private readonly responses: StoredResponses,
    private readonly metrics: PipelineMetrics,
  ) {}

  /** @throws UnavailableError when others won every race for ten seconds; nothing was written then */
  async handle<G, A>(plan: OrderedPlan<G, A>): Promise<A> {
    const late = performance.now() + RETRY_WITHIN_MS;
    for (let losses = 1; ; losses++) {
      const given = await plan.given();
      const streams = given.participants.map(({ rows, id }) => streamOf(rows.aggregate, id));
      try {
        return await this.pipeline.holding(streams, () => this.once(plan, given));
      } catch (error) {
        if (!isLostRace(error, plan.racing)) throw error;
        if (performance.now() > late) throw contended();
      }
      await backOff(losses);
    }
  }

  private async once<G, A>(
    plan: OrderedPlan<G, A>,
    given: G & { participants: Participant[] },
  ): Promise<A> {
    const { keyed } = plan.context;
    const loaded = await this.load(given.participants);
    const states = new Map([...loaded].map(([stream, one]) => [stream, one.state]));
    const stateOf = ((rows: AnyTable, id: number) =>
      states.get(streamOf(rows.aggregate, id))) as StateOf;
    const now = new Date();
    const { parts, ...beside } = plan.decide(stateOf, given, now);
    const meta = metaOf(plan.context, now);
    const writes: Write[] = [];
    for (const { rows, id, events, basis } of parts) {
      const stream = streamOf(rows.aggregate, id);
      const before = loaded.get(stream);
      if (!before) throw new Error(`${stream} does not exist yet`);
      const { state, recorded } = foldOn(rows, before.state, events, meta);
      if (!state) throw new Error(`${stream} has no state`);
      states.set(stream, state);
      writes.push({
        stream,
        expected: before.head,
        events: await this.keys.sealed(recorded.map((fact) => newEvent(rows, fact))),
        row: rowOf({ rows, id }, state),
        ...(basis !== undefined && { basis }),
      });
    }
    const events = writes.flatMap((write) => write.events);
    boundedBytes(events);
    const told = plan.answer(stateOf, given, now);
    if (keyed) keyed.subjectId ??= this.keys.subjects.find(events);
    const response = keyed && (await this.responses.sealed(keyed, writes[0]?.stream ?? '', told));
    await this.metrics.commit(events.length, () =>
      this.store.commit({
        accountId: plan.context.accountId,
        writes,
        ...beside,
        responses: response ? [response] : [],
      }),
    );
    if (keyed) keyed.stored = true;
    return told;
  }

  /** From the streams themselves: where rows may lag, a decision on an old one would lose its race anyway. */
  private async load(participants: Participant[]) {
    const found = await Promise.all(
      participants.map(async ({ rows, id }) => ({
        stream: streamOf(rows.aggregate, id),
        loaded: await this.rows.load(rows, id, true),
      })),
    );
    return new Map(found.flatMap(({ stream, loaded }) => (loaded ? [[stream, loaded]] : [])));
  }
}

function isLostRace(error: unknown, racing: string[]): boolean {
  if (error instanceof ClaimTakenError) return error.kinds.every((kind) => racing.includes(kind));
  if (error instanceof CapReachedError) return racing.includes(error.kind.table);
  return error instanceof ConflictError;
}
