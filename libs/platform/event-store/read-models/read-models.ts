import { Inject, Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import type { Aggregate, DomainEvent, RecordedEvent } from '#platform/kernel/aggregate.js';
import { DamagedHistoryError, UnavailableError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import type { DatabasePool } from '#platform/database/database-pool.js';
import { toReadModelArguments } from '../postgres/commit-arguments.js';
import {
  EventStore,
  type EventRef,
  type ExtraValues,
  type Head,
  type Precondition,
  type ReadIds,
} from '../port/event-store.js';
import { foldStream, type FoldRange } from './fold-stream.js';
import { ReadModelCache } from './read-model-cache.js';
import { ReadModelLoader, type ReadModelRow } from './read-model-loader.js';
import { PersonalKeys } from '../personal-keys/personal-keys.js';
import type { PersonalKey } from '../personal-keys/personal-parts.js';

/** The read model of an aggregate, which alone is one, and what a load joins from other tables. */
export type ReadModel<S extends { accountId: number }, E extends DomainEvent> = Aggregate<S, E> & {
  /** SQL for a jsonb object, over SQL for the row's id and account, which arrives as `LoadedReadModel.extraValues`. */
  extraColumn?: (id: string, account: string) => string;
  /** An SQL expression over `r`: the person whose key the commands on it will need. */
  subjectIdSql?: string;
  /**
   * Whether to cache loaded read models for the next command, whose commit checks that `extraColumn` is the same. For
   * records that are read right before they are changed. `extraColumn` must change when the person's key does.
   */
  isCached?: true;
  /** Finds the person whose data the state contains in plain text. */
  findSubjectId?: (state: S) => number | null;
  /** Returns the values that an event claims for the stream, and those that it releases (`Commit.claims`). */
  getClaimChanges?: (event: RecordedEvent<E>, before: S | undefined) => ClaimChanges;
  /** Returns ids in the event that have no stream of their own, by the table whose sequence they come from. */
  getOtherIds?: (event: E) => Record<string, number>;
  followUp?: FollowUp<S, E>;
};

/** How a part of a command to several records follows from the parts before it, when others change the record meanwhile. */
export type FollowUp<S, E extends DomainEvent> = {
  /** Decides the part on the state of the record. It keeps one of the planned events, by type, and so its id. */
  decide: (part: FollowUpPart<S, E>) => DomainEvent[];
  /** Types of events that others may record meanwhile. After any other the command starts again. */
  allowedEvents?: readonly string[];
};

/** The read model of any aggregate, for code that works on all of them. */
export type AnyReadModel = ReadModel<{ accountId: number }, DomainEvent>;

/** Inject the read models of every aggregate, and the tables that have ids and no read model. */
export const ALL_READ_MODELS = Symbol('all read models');
export const PLAIN_TABLES = Symbol('plain tables');

/** The part of a read model that readers of the log need: whose streams it shows. */
export type StreamKind = Pick<AnyReadModel, 'name' | 'table' | 'beginsHistory'>;

/** A table that is not projected from events, so a restore can leave it behind them. Its ids come from its sequence. */
export type PlainTable = {
  table: string;
  /** Holds a position of the log. */
  positionColumn?: string;
};

/**
 * @property earlierEvents the events of the parts before it, personal data decrypted
 * @property inputs those of its `StreamDecision`
 */
export type FollowUpPart<S, E extends DomainEvent> = {
  plannedEvents: RecordedEvent<E>[];
  state: S;
  earlierEvents: RecordedEvent<DomainEvent>[];
  inputs: unknown;
};

export type UniqueValue = { kind: string; value: string };

/** @property releasesAll the stream releases everything that it holds */
export type ClaimChanges = { claims?: UniqueValue[]; releases?: UniqueValue[]; releasesAll?: true };

/**
 * @property subjectId the person whom the record is about, if any
 * @property isErased that person's key is destroyed
 */
export type LoadedReadModel<S> = {
  state: S;
  head: Head;
  extraValues: ExtraValues;
  subjectId: number | null;
  isErased: boolean;
};

/** @property keys of its people, valid for a commit that has the precondition */
export type CachedReadModel<S> = {
  row: LoadedReadModel<S>;
  keys: Map<number, PersonalKey>;
  precondition: Precondition;
};

export const toStreamName = (aggregate: { name: string }, id: number): string =>
  `${aggregate.name}-${id}`;

/** Loads read models. Loading one costs one row, however long its history. */
@Injectable()
export class ReadModels {
  private readonly log = new Logger('read models');
  private readonly loaders = new Map<string, ReadModelLoader>();
  /** What this process has loaded or committed last, by stream, of the kinds that are cached. */
  readonly cache = new ReadModelCache<CachedReadModel<{ accountId: number }>>();

  constructor(
    @Inject(Pool) private readonly pool: DatabasePool,
    private readonly eventStore: EventStore,
    private readonly keys: PersonalKeys,
  ) {}

  /** Loads a read model for somebody who reads it, also while the event store is away. */
  async load<S extends { accountId: number }, E extends DomainEvent>(
    readModel: ReadModel<S, E>,
    id: number,
  ): Promise<LoadedReadModel<S> | undefined> {
    const row = await this.getLoader(readModel).read(id);
    return row && this.toLoaded(readModel, id, row);
  }

  /**
   * Loads a read model for a decision, or for what must miss nothing: with every event of its stream.
   * @throws UnavailableError while the event store is away
   */
  async loadCurrent<S extends { accountId: number }, E extends DomainEvent>(
    readModel: ReadModel<S, E>,
    id: number,
  ): Promise<LoadedReadModel<S> | undefined> {
    const loader = this.getLoader(readModel);
    let row = await loader.read(id);
    if (await this.catchUpIfBehind(readModel, id, row)) row = await loader.read(id);
    return row && this.toLoaded(readModel, id, row);
  }

  /**
   * Loads many read models in one statement, and those that are missing for certain.
   * @returns those that exist, by id
   */
  async loadAll<S extends { accountId: number }, E extends DomainEvent>(
    readModel: ReadModel<S, E>,
    ids: number[],
  ): Promise<Map<number, LoadedReadModel<S>>> {
    const loaded = new Map<number, LoadedReadModel<S>>();
    if (ids.length === 0) return loaded;
    for (const [id, row] of await this.getLoader(readModel).readAll(ids)) {
      const record = await this.toLoaded(readModel, id, row);
      if (record) loaded.set(id, record);
    }
    await Promise.all(
      ids.map(async (id) => {
        if (loaded.has(id) || !(await this.catchUpIfBehind(readModel, id))) return;
        const record = await this.load(readModel, id);
        if (record) loaded.set(id, record);
      }),
    );
    return loaded;
  }

  private async toLoaded<S extends { accountId: number }, E extends DomainEvent>(
    readModel: ReadModel<S, E>,
    id: number,
    row: ReadModelRow,
  ): Promise<LoadedReadModel<S> | undefined> {
    const { extra_values, subject_id } = row;
    const subject = {
      extraValues: extra_values,
      subjectId: subject_id,
      isErased: subject_id !== null && row.wrapped === null,
    };
    if (row.projection_version !== readModel.projectionVersion) {
      const stream = toStreamName(readModel, id);
      const projected = await this.project(readModel, stream);
      return projected && { ...projected, ...subject };
    }
    const loaded = { state: row.state as S, head: toHead(row), ...subject };
    this.cacheLoaded(readModel, id, loaded, this.findStableKeys(row));
    return loaded;
  }

  private cacheLoaded<S extends { accountId: number }, E extends DomainEvent>(
    { name, table, extraColumn, isCached }: ReadModel<S, E>,
    id: number,
    row: LoadedReadModel<S>,
    keys: CachedReadModel<S>['keys'] | undefined,
  ): void {
    if (!isCached || !extraColumn || !this.eventStore.isInDatabase) return;
    const stream = toStreamName({ name }, id);
    if (!keys) {
      this.cache.delete(stream);
      return;
    }
    const precondition = { table, extraColumn, id, expectedValues: row.extraValues };
    this.cache.set(stream, { row: { ...row }, keys, precondition });
  }

  /** Finds the keys of a read model's people; undefined when one was erased or is getting another key. */
  private findStableKeys({
    subject_id,
    previous_wrapped,
    is_renewed,
  }: ReadModelRow): CachedReadModel<unknown>['keys'] | undefined {
    if (subject_id === null) return new Map();
    const key =
      previous_wrapped === null && is_renewed === false
        ? this.keys.findStable(subject_id)
        : undefined;
    return key && new Map([[subject_id, key]]);
  }

  /**
   * Finds read models that are older than events of their streams. Ignores events of other streams.
   * @param read how to query the database, for a caller that holds a connection already
   * @returns their ids
   */
  async findBehind<S extends { accountId: number }, E extends DomainEvent>(
    { name, table }: ReadModel<S, E>,
    events: Iterable<EventRef>,
    read: ReadIds = (statement) => query(this.pool, statement),
  ): Promise<number[]> {
    const prefix = `${name}-`;
    const latestRevisions = new Map<number, number>();
    for (const { stream, revision } of events) {
      if (stream.startsWith(prefix))
        latestRevisions.set(Number(stream.slice(prefix.length)), revision);
    }
    if (latestRevisions.size === 0) return [];
    const rows = await read({
      name: `rows_behind_${table}`,
      text: `select w.id from unnest($1::bigint[], $2::bigint[]) as w (id, revision)
             where not exists (select from ${table} r where r.id = w.id and r.revision >= w.revision)`,
      values: [[...latestRevisions.keys()], [...latestRevisions.values()]],
    });
    return rows.map(({ id }) => id);
  }

  /**
   * Brings a read model up to date, for code that reads it in other ways than `loadCurrent`.
   * @returns false: the event store is away
   */
  async refresh<S extends { accountId: number }, E extends DomainEvent>(
    readModel: ReadModel<S, E>,
    id: number,
  ): Promise<boolean> {
    if (!this.eventStore.isReachable) return false;
    try {
      await this.catchUpIfBehind(readModel, id, await this.getLoader(readModel).read(id));
      return true;
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      return false;
    }
  }

  /** @returns whether the read model was behind its stream; by now this process or another one has written it */
  private async catchUpIfBehind<S extends { accountId: number }, E extends DomainEvent>(
    readModel: ReadModel<S, E>,
    id: number,
    row?: ReadModelRow,
  ): Promise<boolean> {
    const stream = toStreamName(readModel, id);
    if (await this.eventStore.isProjected(stream, row?.revision ?? -1)) return false;
    await this.catchUp(readModel, id);
    return true;
  }

  /** Brings a read model up to date. */
  async catchUp<S extends { accountId: number }, E extends DomainEvent>(
    readModel: ReadModel<S, E>,
    id: number,
  ): Promise<void> {
    const { table, projectionVersion } = readModel;
    const stream = toStreamName(readModel, id);
    const row = await this.getLoader(readModel).read(id);
    const current = row?.projection_version === projectionVersion ? row : undefined;
    const from = current && { state: current.state as S, revision: current.revision };
    const projected = await this.project(readModel, stream, { from });
    if (!projected || projected.head.revision === row?.revision) return;
    const { state, head } = projected;
    const update = {
      accountId: state.accountId,
      stream,
      head,
      row: { table, id, projectionVersion, state },
    };
    await query(this.pool, {
      name: 'es_write_read_models',
      text: 'select es.write_read_models($1, $2, $3)',
      values: [...toReadModelArguments([update]), [stream]],
    });
  }

  /**
   * Checks that a read model is not ahead of its stream. It would lose every race then. A partial restore leaves such
   * read models, and retrying does not help.
   * @throws DamagedHistoryError
   */
  async assertNotAhead(
    readModel: ReadModel<{ accountId: number }, DomainEvent>,
    id: number,
  ): Promise<void> {
    const row = await this.getLoader(readModel).read(id);
    if (!row) return;
    const stream = toStreamName(readModel, id);
    const [event] = await this.eventStore.readEvents([{ stream, revision: row.revision }]);
    if (event?.hash === row.hash.toString('hex')) return;
    const reason = describeAhead(readModel.table, id);
    this.log.error(reason);
    throw new DamagedHistoryError('change', reason);
  }

  /** Projects the events alone. @returns undefined when there are none in the range */
  project<S extends { accountId: number }, E extends DomainEvent>(
    aggregate: Aggregate<S, E>,
    stream: string,
    range?: FoldRange<S>,
  ): ReturnType<typeof foldStream<S, E>> {
    return foldStream(this.eventStore, this.keys, aggregate, stream, range);
  }

  private getLoader<S extends { accountId: number }, E extends DomainEvent>(
    readModel: ReadModel<S, E>,
  ): ReadModelLoader {
    const existing = this.loaders.get(readModel.table);
    if (existing) return existing;
    const loader = new ReadModelLoader(
      this.pool,
      this.keys,
      readModel,
      this.eventStore.readModelSlots,
    );
    this.loaders.set(readModel.table, loader);
    return loader;
  }
}

function toHead({ revision, hash }: { revision: number; hash: Buffer }): Head {
  return { revision, hash: hash.toString('hex') };
}

/** Describes a read model ahead of its stream, for the operator. */
export function describeAhead(table: string, id: number): string {
  return `${table} ${id}: the read model is ahead of its history, so the record cannot be changed. If no newer backup has the missing events, run inkpad verify --repair.`;
}
