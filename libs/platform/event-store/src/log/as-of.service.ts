import { Injectable } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import type { DomainEvent } from '#kernel/aggregate.js';
import { InvalidFieldsError } from '#kernel/errors.js';
import { asked } from '#database/connection.js';
import { recorded } from '../port/codec.js';
import { EventStore, type Position } from '../port/event-store.js';
import { LogTimes } from './log-times.service.js';
import { PersonalKeys } from '../personal-keys/personal-keys.js';
import { streamOf, type RowTable } from '../read-models/read-models.js';

/** By how much the clock that a caller got the time from may be ahead of the database's. */
const SKEW_MS = 250;

/** What is known of a record whose kind is not. */
export type PastRecord = { id: number; deletedAt?: string | null };

/** A moment in the past, and how far the log had come by then. */
export type Past = { time: Date; position: Position };

/** The state of records as it was, folded from their events up to one position of the log (ADR-0034). */
@Injectable()
export class AsOf {
  constructor(
    private readonly store: EventStore,
    private readonly times: LogTimes,
    private readonly keys: PersonalKeys,
    private readonly tables: RowTable<{ accountId: number }, DomainEvent>[],
  ) {}

  /** @throws InvalidFieldsError when the time is in the future. @throws UnavailableError */
  async at(time: Date): Promise<Past> {
    const early = time.getTime() - (await this.times.now());
    if (early > SKEW_MS) {
      throw new InvalidFieldsError({ as_of: ['must not be in the future'] });
    }
    if (early > 0) await wait(early);
    return { time, position: await asked(this.times.positionAt(time.getTime())) };
  }

  /** By id, in their order; without those that had not begun. What was erased since is not there any more. */
  async states<S extends { accountId: number }, E extends DomainEvent>(
    { aggregate }: Pick<RowTable<S, E>, 'aggregate'>,
    ids: number[],
    { position }: Past,
  ): Promise<S[]> {
    const states = new Map<string, S | undefined>(
      ids.map((id) => [streamOf(aggregate, id), undefined]),
    );
    const fold = async () => {
      for await (const events of this.store.readFacts([...states.keys()], position)) {
        for (const event of await this.keys.openedWhenRead(events)) {
          const state = aggregate.evolve(states.get(event.stream), recorded<E>(aggregate, event));
          states.set(event.stream, state);
        }
      }
    };
    await asked(fold());
    return [...states.values()].filter((state) => state !== undefined);
  }

  async state<S extends { accountId: number }, E extends DomainEvent>(
    rows: Pick<RowTable<S, E>, 'aggregate'>,
    id: number,
    past: Past,
  ): Promise<S | undefined> {
    return (await this.states(rows, [id], past))[0];
  }

  /**
   * The records of another context's table that existed then and had not been deleted. For kinds of which an account has few.
   */
  async records<R extends PastRecord>(table: string, ids: number[], past: Past): Promise<R[]> {
    const rows = this.tables.find((one) => one.table === table);
    if (!rows) throw new Error(`${table} is not a row table`);
    const states = (await this.states(rows, ids, past)) as unknown as R[];
    return states.filter(({ deletedAt }) => deletedAt == null);
  }
}
