import { Injectable, Logger } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'pg';
import type { Aggregate, DomainEvent, Recorded } from '#kernel/aggregate.js';
import { UnavailableError } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import { recorded } from '../port/codec.js';
import { rowArguments } from '../postgres/commit-arguments.js';
import { EventStore, type EventRef, type Head, type Precondition } from '../port/event-store.js';
import { Batcher } from '#database/batcher.js';
import { KeptRows } from './read-model-cache.js';
import { PersonalKeys, type WrappedKey } from '../personal-keys/personal-keys.js';
import type { PersonalKey } from '../personal-keys/personal-parts.js';

/** An aggregate's row table, and what a load joins from other tables. */
export type RowTable<S extends { accountId: number }, E extends DomainEvent> = {
  aggregate: Aggregate<S, E>;
  table: string;
  /** Set for the aggregate with which every history begins: without one of it, the database is empty. */
  beginsHistory?: true;
  /**
   * SQL for a number, over SQL for the row's id and account; its value arrives as `Loaded.joined`, for the module of the table
   * to read.
   */
  joined?: (id: string, account: string) => string;
  /** An SQL expression over `r`: the person whose key the commands on it will need. */
  person?: string;
  /**
   * For records that are read right before they are changed: what was loaded is kept for the next command, whose commit
   * looks whether `joined` is still the same. That must change when the person's key does.
   */
  kept?: true;
  /** The person whose data the state shows in clear. */
  shows?: (state: S) => number | null;
  /** The values that an event claims for the stream, and those that it releases (`Commit.claims`). */
  claimsOf?: (event: Recorded<E>, before: S | undefined) => Claimed;
  /** Ids in the event that have no stream of their own, by the table whose sequence they come from. */
  idsIn?: (event: E) => Record<string, number>;
  /**
   * Decides a later part of a commit to several streams again, where somebody else was faster. It keeps one of the
   * planned events, by type, and so its id.
   */
  again?: (part: Part<S, E>) => DomainEvent[];
  /** What others may have done since such a part was planned: it is decided again, instead of the whole commit. */
  withstands?: readonly string[];
};

/** What the readers of the log need to know of a table: whose streams it shows. */
export type StreamKind = {
  aggregate: { name: string };
  table: string;
  beginsHistory?: true;
};

/** A table that is made from no events, and which a restore can leave behind them. Its ids come from its sequence. */
export type PlainTable = {
  table: string;
  /** Holds a position of the log. */
  positionColumn?: string;
};

/** @property earlier the events of the writes before it, personal data decrypted */
export type Part<S, E extends DomainEvent> = {
  planned: Recorded<E>[];
  state: S;
  earlier: Recorded<DomainEvent>[];
  basis: unknown;
};

export type UniqueValue = { kind: string; value: string };

/** @property none the stream holds nothing any more, whatever it was */
export type Claimed = { taken?: UniqueValue[]; released?: UniqueValue[]; none?: true };

/**
 * @property subjectId the person whom the record is about, if any
 * @property erased that person's key is destroyed
 */
export type Loaded<S> = {
  state: S;
  head: Head;
  joined: number;
  subjectId: number | null;
  erased: boolean;
};

/** @property keys that the person had, by person: good for a commit that has the precondition */
type Kept<S> = { row: Loaded<S>; keys: Map<number, PersonalKey>; precondition: Precondition };

type Row = {
  id: number;
  revision: number;
  hash: Buffer;
  projection_version: number;
  state: object;
  joined: number;
  person: number | null;
} & (WrappedKey | Record<keyof WrappedKey, null>);

export type ReadIds = (statement: {
  name: string;
  text: string;
  values: unknown[];
}) => Promise<{ id: number }[]>;

/** How long a row that is behind is left to its writer, who is about to write it. */
const WRITERS_MS = [20, 80, 400];

export const streamOf = (aggregate: { name: string }, id: number): string =>
  `${aggregate.name}-${id}`;

/** Rows are folds of streams: loading one costs one row, however long its history. */
@Injectable()
export class Rows {
  private readonly log = new Logger('rows');
  private readonly loaders = new Map<string, Batcher<number, Row | undefined>>();
  private readonly keptRows = new KeptRows<Kept<{ accountId: number }>>();
  /** Commands on kept rows go on together, like those whose rows were loaded together. */
  private readonly turn = new Batcher<undefined, undefined>(Infinity, Infinity, (items) =>
    Promise.resolve(items.map((value) => ({ status: 'fulfilled', value }))),
  );

  constructor(
    private readonly pool: Pool,
    private readonly events: EventStore,
    private readonly keys: PersonalKeys,
  ) {}

  /**
   * @param fresh whether to look at the stream too, where rows may lag behind; missing events are then folded into the
   *   row
   */
  async load<S extends { accountId: number }, E extends DomainEvent>(
    rows: RowTable<S, E>,
    id: number,
    fresh = false,
  ): Promise<Loaded<S> | undefined> {
    const loader = this.loaderOf(rows);
    let row = await loader.add(id);
    if (fresh && this.events.rowsMayLag && (await this.catchUp(rows, id, row))) {
      row = await loader.add(id);
    }
    if (!row) return undefined;
    const { joined, person } = row;
    const about = { joined, subjectId: person, erased: person !== null && row.wrapped === null };
    if (row.projection_version !== rows.aggregate.foldVersion) {
      const fold = await this.fold(rows.aggregate, streamOf(rows.aggregate, id));
      return fold && { ...fold, ...about };
    }
    const loaded = { state: row.state as S, head: headOf(row), ...about };
    this.keep(rows, id, loaded, this.lastingKeys(row));
    return loaded;
  }

  /** What this process has loaded or committed last, if that is kept. Others may have changed it since. */
  async kept<S extends { accountId: number }, E extends DomainEvent>(
    rows: RowTable<S, E>,
    id: number,
  ): Promise<Kept<S> | undefined> {
    const kept = rows.kept && this.keptRows.find(streamOf(rows.aggregate, id));
    if (!kept) return undefined;
    await this.turn.add(undefined);
    return kept as Kept<S>;
  }

  /** A commit has continued from what was kept, or from what was loaded, and has led to this. */
  committed<S extends { accountId: number }, E extends DomainEvent>(
    rows: RowTable<S, E>,
    id: number,
    row: Loaded<S>,
  ): void {
    const before = rows.kept && this.keptRows.peek(streamOf(rows.aggregate, id));
    if (before) this.keep(rows, id, row, before.keys);
  }

  private keep<S extends { accountId: number }, E extends DomainEvent>(
    { aggregate, table, joined, kept }: RowTable<S, E>,
    id: number,
    row: Loaded<S>,
    keys: Kept<S>['keys'] | undefined,
  ): void {
    if (!kept || !joined || this.events.rowsMayLag) return;
    const stream = streamOf(aggregate, id);
    if (!keys) {
      this.keptRows.forget(stream);
      return;
    }
    const precondition = { table, joined, id, seen: row.joined };
    this.keptRows.keep(stream, { row, keys, precondition });
  }

  /** Undefined where the person was erased, or has been given another key: whoever seals has to look then. */
  private lastingKeys({ person, former, renewed }: Row): Kept<unknown>['keys'] | undefined {
    if (person === null) return new Map();
    const key = former === null && renewed === false ? this.keys.lasting(person) : undefined;
    return key && new Map([[person, key]]);
  }

  /** A commit that continued from a kept row was a conflict. */
  wasStale({ aggregate }: RowTable<{ accountId: number }, DomainEvent>, id: number): void {
    this.keptRows.wasStale(streamOf(aggregate, id));
  }

  /**
   * For code that reads rows in other ways than `load`: writes rows that are missing although their streams exist. Does
   * nothing where rows never lag.
   */
  async ensure<S extends { accountId: number }, E extends DomainEvent>(
    rows: RowTable<S, E>,
    ids: number[],
  ): Promise<void> {
    if (!this.events.rowsMayLag) return;
    for (const id of ids) await this.load(rows, id, true);
  }

  /**
   * For whoever has read events of the log: waits until the rows are no older than these, and writes those whose writer
   * does not. The streams themselves are read for those alone. Does nothing where rows never lag.
   */
  async reach<S extends { accountId: number }, E extends DomainEvent>(
    rows: RowTable<S, E>,
    events: EventRef[],
  ): Promise<void> {
    if (!this.events.rowsMayLag) return;
    let behind = await this.behind(rows, events);
    for (const milliseconds of WRITERS_MS) {
      if (behind.length === 0) return;
      await wait(milliseconds);
      behind = await this.behind(rows, events);
    }
    for (const id of behind) await this.load(rows, id, true);
  }

  /**
   * @param read how to query the database, for a caller that holds a connection already
   * @returns the ids of rows that are older than events of their streams; events of other streams are passed over
   */
  async behind<S extends { accountId: number }, E extends DomainEvent>(
    { aggregate, table }: RowTable<S, E>,
    events: Iterable<EventRef>,
    read: ReadIds = (statement) => ask(this.pool, statement),
  ): Promise<number[]> {
    const prefix = `${aggregate.name}-`;
    const newest = new Map<number, number>();
    for (const { stream, revision } of events) {
      if (stream.startsWith(prefix)) newest.set(Number(stream.slice(prefix.length)), revision);
    }
    if (newest.size === 0) return [];
    const rows = await read({
      name: `rows_behind_${table}`,
      text: `select w.id from unnest($1::bigint[], $2::bigint[]) as w (id, revision)
             where not exists (select from ${table} r where r.id = w.id and r.revision >= w.revision)`,
      values: [[...newest.keys()], [...newest.values()]],
    });
    return rows.map(({ id }) => id);
  }

  /** @returns whether the row was behind its stream */
  async catchUp<S extends { accountId: number }, E extends DomainEvent>(
    rows: RowTable<S, E>,
    id: number,
    row?: { revision: number; hash: Buffer; projection_version: number; state: object },
  ): Promise<boolean> {
    const { aggregate, table } = rows;
    const stream = streamOf(aggregate, id);
    const known = row?.projection_version === aggregate.foldVersion ? row : undefined;
    const from = known && { state: known.state as S, head: headOf(known) };
    const fold = await this.fold(aggregate, stream, undefined, from);
    if (!fold || fold.head.revision === row?.revision) return false;
    const { state, head } = fold;
    const placed = {
      accountId: state.accountId,
      stream,
      head,
      row: { table, id, foldVersion: aggregate.foldVersion, state },
    };
    await ask(this.pool, {
      name: 'es_write_rows',
      text: 'select es.write_read_models($1, $2, $3)',
      values: [...rowArguments([placed]), [stream]],
    });
    return true;
  }

  /**
   * A row that is ahead of its stream loses every race. A partial restore leaves such rows, and retrying does not help.
   * @throws UnavailableError
   */
  async refuseAhead(rows: RowTable<{ accountId: number }, DomainEvent>, id: number): Promise<void> {
    const row = await this.loaderOf(rows).add(id);
    if (!row) return;
    const stream = streamOf(rows.aggregate, id);
    const [event] = await this.events.readEvents([{ stream, revision: row.revision }]);
    if (event?.hash === row.hash.toString('hex')) return;
    this.log.error(rowAhead(rows.table, id));
    throw new UnavailableError('This record cannot be changed until its history is repaired');
  }

  /**
   * Folds the events alone, up to a revision (inclusive) if one is given, continuing from an earlier state if one is
   * given.
   */
  async fold<S extends { accountId: number }, E extends DomainEvent>(
    aggregate: Aggregate<S, E>,
    stream: string,
    to?: number,
    from?: { state: S; head: Head },
  ): Promise<{ state: S; head: Head } | undefined> {
    let folded = from;
    const range = {
      from: from === undefined ? 0 : from.head.revision + 1,
      ...(to !== undefined && { to }),
    };
    for await (const stored of this.events.readStream(stream, range)) {
      const [event] = await this.keys.opened([stored]);
      if (event === undefined) throw new Error('decryption must return every event');
      const state: S = aggregate.evolve(folded?.state, recorded<E>(aggregate, event));
      folded = { state, head: { revision: event.revision, hash: event.hash } };
    }
    return folded;
  }

  private loaderOf<S extends { accountId: number }, E extends DomainEvent>(
    rows: RowTable<S, E>,
  ): Batcher<number, Row | undefined> {
    const known = this.loaders.get(rows.table);
    if (known) return known;
    const { table, joined = () => '0', person = 'null::bigint' } = rows;
    // Key by key: as a join, a plan that is made while there are few keys reads all of them.
    const text = `
      select r.id, r.revision, r.hash, r.projection_version, r.state, ${joined('r.id', 'r.account_id')} as joined,
        ${person} as person, k.wrapped, k.previous_wrapped as former, k.is_renewed as renewed
      from ${table} r left join lateral (
        select * from personal_keys where subject_id = ${person} offset 0) k on true where`;
    // PostgreSQL would plan the statement for several ids anew each time, even for a single id.
    const one = { name: `row_${table}`, text: `${text} r.id = $1` };
    const several = { name: `rows_${table}`, text: `${text} r.id = any ($1)` };
    const { rowLane } = this.events;
    const loader = new Batcher<number, Row | undefined>(
      rowLane ?? 2,
      rowLane ? 64 : 32,
      async (ids) => {
        const found = new Map<number, Row>();
        const asked = performance.now();
        const query = ids.length === 1 ? { ...one, values: ids } : { ...several, values: [ids] };
        for (const row of await ask<Row>(this.pool, query)) {
          found.set(row.id, row);
          const { person: about } = row;
          if (about !== null) this.keys.remember(about, row.wrapped === null ? null : row, asked);
        }
        return ids.map((id) => ({ status: 'fulfilled', value: found.get(id) }));
      },
    );
    this.loaders.set(rows.table, loader);
    return loader;
  }
}

function headOf({ revision, hash }: { revision: number; hash: Buffer }): Head {
  return { revision, hash: hash.toString('hex') };
}

/** For the operator. */
export function rowAhead(table: string, id: number): string {
  return `${table} ${id}: the row is ahead of its history, so the record cannot be changed. If no newer backup has the missing events, run npm run verify -- --repair.`;
}
