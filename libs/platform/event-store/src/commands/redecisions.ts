import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { DomainEvent } from '#kernel/aggregate.js';
import { newId } from '#kernel/randomness.js';
import { recorded } from '../port/codec.js';
import { foldOn, newEvent, rowOf } from './decided-events.js';
import {
  EventStore,
  type NewEvent,
  type Redecider,
  type StoredEvent,
  type Write,
} from '../port/event-store.js';

import { PersonalKeys } from '../personal-keys/personal-keys.js';
import { Rows, streamOf, type RowTable } from '../read-models/read-models.js';

type AnyTable = RowTable<{ accountId: number }, DomainEvent>;

/** Lets the event store finish a commit to several streams one of which has moved meanwhile. */
@Injectable()
export class Redecisions implements Redecider, OnModuleInit {
  constructor(
    private readonly store: EventStore,
    private readonly rows: Rows,
    private readonly keys: PersonalKeys,
    private readonly tables: AnyTable[],
  ) {}

  onModuleInit(): void {
    this.store.redecider = this;
  }

  async again({ stream, events, basis }: Write, earlier: Write[]): Promise<Write> {
    const { rows, id } = this.tableOf(stream);
    const [first] = events;
    // By the row, however long the history is: whoever writes to the stream meanwhile makes this start again.
    const fold = await this.rows.load(rows, id, true);
    if (!rows.again || !fold || !first) throw new Error(`${stream} cannot be decided again`);
    const decided = rows.again({
      planned: await this.opened(stream, events),
      state: fold.state,
      earlier: (
        await Promise.all(earlier.map((write) => this.opened(write.stream, write.events)))
      ).flat(),
      basis,
    });
    const kept = new Map(events.map((event) => [event.type, event.id]));
    const idOf = ({ type }: DomainEvent) => {
      const planned = kept.get(type);
      kept.delete(type);
      return planned ?? newId();
    };
    const after = foldOn(rows, fold.state, decided, first.meta, idOf);
    if (!after.state) throw new Error(`${stream} has no state`);
    return {
      stream,
      expected: fold.head,
      events: await this.keys.sealed(after.recorded.map((fact) => newEvent(rows, fact))),
      row: rowOf({ rows, id }, after.state),
      ...(basis !== undefined && { basis }),
    };
  }

  withstands(stream: string, others: StoredEvent[]): boolean {
    const { withstands = [] } = this.tableOf(stream).rows;
    return others.every(({ type }) => withstands.includes(type));
  }

  async catchUp(stream: string): Promise<void> {
    const { rows, id } = this.tableOf(stream);
    await this.rows.load(rows, id, true);
  }

  private async opened(stream: string, events: NewEvent[]) {
    const { aggregate } = this.tableOf(stream).rows;
    const none = { stream, revision: 0, hash: '', position: { commit: 0n, prepare: 0n } };
    const opened = await this.keys.opened(events.map((event) => ({ ...event, ...none })));
    return opened.map((event) => recorded<DomainEvent>(aggregate, event));
  }

  private tableOf(stream: string): { rows: AnyTable; id: number } {
    const id = Number(stream.slice(stream.lastIndexOf('-') + 1));
    const rows = this.tables.find(({ aggregate }) => streamOf(aggregate, id) === stream);
    if (!rows) throw new Error(`${stream} belongs to no aggregate`);
    return { rows, id };
  }
}
