import { Inject, Injectable } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import type { Aggregate, DomainEvent } from '#platform/kernel/aggregate.js';
import { InvalidFieldsError } from '#platform/kernel/errors.js';
import { awaitQuery } from '#platform/database/connection.js';
import { EventStore, type Position, type UnpositionedEvent } from '../port/event-store.js';
import { LogTimes } from './log-times.service.js';
import { PersonalKeys } from '../personal-keys/personal-keys.js';
import { foldEvent, openPage } from '../read-models/fold-stream.js';
import { ALL_READ_MODELS, toStreamName, type ReadModel } from '../read-models/read-models.js';
import { PLATFORM_ISSUES } from '#platform/kernel/issues.js';

/** How far a caller's clock may be ahead of the database's. */
const SKEW_MS = 250;

/** The known fields of a record of any kind. */
export type PastRecord = { id: number; deletedAt?: string | null };

/** A moment in the past, and the position of the log at that time. */
export type PointInTime = { time: Date; position: Position };

/** Projects the past state of records from their events up to one position of the log (ADR-0034). */
@Injectable()
export class PastStates {
  constructor(
    private readonly eventStore: EventStore,
    private readonly times: LogTimes,
    private readonly keys: PersonalKeys,
    @Inject(ALL_READ_MODELS)
    private readonly allReadModels: ReadModel<{ accountId: number }, DomainEvent>[],
  ) {}

  /**
   * Finds the position of the log at a time.
   * @throws InvalidFieldsError when the time is in the future
   * @throws UnavailableError
   */
  async toMoment(time: Date): Promise<PointInTime> {
    const earlyMs = time.getTime() - (await this.times.readNow());
    if (earlyMs > SKEW_MS) {
      throw new InvalidFieldsError({ as_of: [PLATFORM_ISSUES.in_future] });
    }
    if (earlyMs > 0) await wait(earlyMs);
    return { time, position: await awaitQuery(this.times.findPositionAt(time.getTime())) };
  }

  /**
   * Projects records by id, in the order of the ids. Leaves out those that did not exist yet. What was erased since is
   * missing.
   */
  async projectAll<S extends { accountId: number }, E extends DomainEvent>(
    aggregate: Aggregate<S, E>,
    ids: number[],
    { position }: PointInTime,
  ): Promise<S[]> {
    const states = new Map<string, S | undefined>(
      ids.map((id) => [toStreamName(aggregate, id), undefined]),
    );
    const open = (events: UnpositionedEvent[]) => this.keys.openEventsLazily(events);
    const projectEvents = async () => {
      for await (const events of this.eventStore.readFacts([...states.keys()], position)) {
        for (const { opened } of await openPage(this.keys, events, open))
          states.set(opened.stream, foldEvent(aggregate, states.get(opened.stream), opened).state);
      }
    };
    await awaitQuery(projectEvents());
    return [...states.values()].filter((state) => state !== undefined);
  }

  async projectOne<S extends { accountId: number }, E extends DomainEvent>(
    aggregate: Aggregate<S, E>,
    id: number,
    past: PointInTime,
  ): Promise<S | undefined> {
    return (await this.projectAll(aggregate, [id], past))[0];
  }

  /**
   * Projects the records of another context's table that existed then and had not been deleted. Use it for kinds of
   * which an account has few.
   */
  async projectRecords<R extends PastRecord>(
    table: string,
    ids: number[],
    past: PointInTime,
  ): Promise<R[]> {
    const readModel = this.allReadModels.find((candidate) => candidate.table === table);
    if (!readModel) throw new Error(`${table} is not a read model`);
    const states = (await this.projectAll(readModel, ids, past)) as unknown as R[];
    return states.filter(({ deletedAt }) => deletedAt == null);
  }
}
