import { Injectable } from '@nestjs/common';
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'pg';
import type { Awaitable } from '#platform/kernel/awaitable.js';
import { UnavailableError } from '#platform/kernel/errors.js';
import { ExpiringCache } from '#platform/kernel/expiring-cache.js';
import { fingerprint, seal } from '#platform/kernel/sealing.js';
import { query } from '#platform/database/connection.js';
import { IdTakenError } from '#platform/database/ids.js';
import { MasterKeys, type SealedColumn } from '#platform/database/master-keys.js';
import type { Claim, NewEvent } from '../port/event-store.js';
import { KeyCreations } from './key-creations.js';
import { KnownErasures } from './known-erasures.js';
import {
  openWithKey,
  openPersonalPart,
  sealPersonalParts,
  Subjects,
  type PersonalKey,
} from './personal-parts.js';

/** The subject of texts that are about nobody. Real ids begin at 1. */
export const NOBODY = 0;

const MAX_CACHED_KEYS = 20_000;
/** This process forgets a key that another one destroyed within this time. */
const KEY_CACHED_MS = 5_000;
/** A lookup that took longer is discarded: the key may have been destroyed meanwhile. */
const MAX_READ_MS = 2_000;
const FIND_TRIES = 3;

const PURPOSE = 'personal keys';
const getKeyContext = (subjectId: unknown): string => `subject ${String(subjectId)}`;

export const PERSONAL_KEYS_COLUMN: SealedColumn = {
  name: 'personal keys',
  table: 'personal_keys',
  column: 'wrapped',
  id: 'subject_id',
  idType: 'bigint',
  purpose: PURPOSE,
  getContext: getKeyContext,
};

export const FORMER_KEYS_COLUMN: SealedColumn = {
  ...PERSONAL_KEYS_COLUMN,
  name: 'former personal keys',
  column: 'previous_wrapped',
};

type KeyRow = { subject_id: number } & WrappedKey;

/** The columns of `personal_keys`. */
export type WrappedKey = { wrapped: Buffer; previous_wrapped: Buffer | null; is_renewed: boolean };

export type KeyQuery = (statement: {
  name: string;
  text: string;
  values: unknown[];
}) => Promise<KeyRow[]>;

/**
 * Seals and opens personal data. Every person has a key of their own, and events contain personal fields only sealed
 * with it. Destroying the key erases the person from the whole history without touching an event (ADR-0006).
 */
@Injectable()
export class PersonalKeys {
  /** Tracks erased people, whose keys this process must not use, nor anything that was made with one. */
  readonly erasures = new KnownErasures();
  /** The TTL of a key begins when it was requested: what a slow query returns may have changed since. */
  private readonly cache = new ExpiringCache<number, PersonalKey>({
    max: MAX_CACHED_KEYS,
    ttl: KEY_CACHED_MS,
    ttlResolution: 0,
  });

  private readonly creations: KeyCreations;

  constructor(
    private readonly pool: Pool,
    private readonly masterKeys: MasterKeys,
    readonly subjects: Subjects,
  ) {
    this.creations = new KeyCreations(pool);
  }

  /**
   * Creates a key, before the person's first event. `discard` deletes it if that is refused.
   * @param table whose sequence the id is from
   * @throws IdTakenError
   */
  async create(subjectId: number, table: string): Promise<void> {
    const key = randomBytes(32);
    const wrapped = this.masterKeys.seal(PURPOSE, key, getKeyContext(subjectId));
    const isCreated = await this.creations.insert(subjectId, wrapped);
    if (!isCreated) throw new IdTakenError(table, subjectId);
    this.cache.set(subjectId, { current: key, previous: null, isRenewed: false });
  }

  /** Deletes a key that was created for somebody of whom nothing was written. Does no harm when it stays. */
  async discard(subjectId: number): Promise<void> {
    this.cache.delete(subjectId);
    await query(this.pool, {
      name: 'personal_keys_discard',
      text: 'delete from personal_keys where subject_id = $1',
      values: [subjectId],
    }).catch(() => undefined);
  }

  /** Adds a key that another instance has created. Keeps an existing one. */
  async adopt(subjectId: number, key: Buffer, renewed: boolean): Promise<void> {
    await query(this.pool, {
      text: `insert into personal_keys (subject_id, wrapped, is_renewed) values ($1, $2, $3)
             on conflict do nothing`,
      values: [subjectId, this.masterKeys.seal(PURPOSE, key, getKeyContext(subjectId)), renewed],
    });
  }

  /**
   * Caches a key that a load has read.
   * @param key null: it was destroyed
   * @param requestedAt when that load began, by `performance.now()`
   */
  remember(subjectId: number, key: WrappedKey | null, requestedAt: number): void {
    if (key === null) this.cache.delete(subjectId);
    else if (!this.cache.has(subjectId))
      this.cacheKey(subjectId, this.unwrap(subjectId, key), requestedAt);
  }

  /**
   * Finds the cached key, for a caller that checks later whether it is still the same. Undefined when it may soon be
   * another.
   */
  findStable(subjectId: number): PersonalKey | undefined {
    const key = this.findCached(subjectId);
    return key?.previous === null && !key.isRenewed ? key : undefined;
  }

  /**
   * Gives people of one account a second key, in addition to their former one, which a later commit destroys
   * (`Erasure.renewed`). Until then both open. Events are sealed with the new one, and what is made from the history
   * with the former. Returns when every process knows both.
   * @returns people who were being given one already, by a process that may have died since: they keep it for now
   */
  async renew(accountId: number, subjectIds: number[]): Promise<number[]> {
    const keys = subjectIds.map((id) =>
      this.masterKeys.seal(PURPOSE, randomBytes(32), getKeyContext(id)),
    );
    const [result] = await query<{ renewing: number[] }>(this.pool, {
      text: `with renewed as (
               update personal_keys k set previous_wrapped = k.wrapped, wrapped = x.wrapped
               from unnest($1::bigint[], $2::bytea[]) as x(id, wrapped)
               where k.subject_id = x.id and k.previous_wrapped is null
             ), raised as materialized (
               select raise_account_versions(array[$3::bigint])
             )
             select to_json(array(
               select subject_id from personal_keys where subject_id = any ($1) and previous_wrapped is not null
             )) as renewing from raised`,
      values: [subjectIds, keys, accountId],
    });
    for (const id of subjectIds) this.cache.delete(id);
    await wait(KEY_CACHED_MS + MAX_READ_MS);
    return result?.renewing ?? [];
  }

  /** Forgets people who were erased: nothing that was read of them before now is used any more. */
  forget(subjectIds: Iterable<number>, now: number): void {
    for (const id of subjectIds) this.cache.delete(id);
    this.erasures.note(subjectIds, now);
  }

  /** Forgets everything that was read before now: anybody may have been erased. */
  invalidateAll(now: number): void {
    this.cache.clear();
    this.erasures.doubtAll(now);
  }

  private findCached(subjectId: number): PersonalKey | undefined {
    return this.erasures.isTrusted(performance.now()) ? this.cache.get(subjectId) : undefined;
  }

  /** Caches a key, unless its person was erased after it was requested. */
  private cacheKey(subjectId: number, key: PersonalKey, requestedAt: number): void {
    if (!this.erasures.isCurrent(subjectId, requestedAt, performance.now())) return;
    this.cache.set(subjectId, key, { start: requestedAt });
  }

  /**
   * Loads the keys for texts that are made from the history. Leaves out erased people. The key of NOBODY is never
   * destroyed.
   * @param queryKeys how to query the database, for a caller that holds a connection already
   */
  async load(subjectIds: Iterable<number>, queryKeys?: KeyQuery): Promise<Map<number, Buffer>> {
    const keys = await this.find(subjectIds, queryKeys);
    return new Map([...keys].map(([id, { current, previous }]) => [id, previous ?? current]));
  }

  /** Finds the keys for an export of the history. Leaves out erased people. */
  async findForExport(
    subjectIds: number[],
  ): Promise<Map<number, Pick<PersonalKey, 'current' | 'isRenewed'>>> {
    return this.find(subjectIds);
  }

  /** Finds the people whose key was renewed: part of their history cannot be read any more. */
  async findRenewed(subjectIds: number[]): Promise<number[]> {
    const keys = await this.find(subjectIds);
    return [...keys].flatMap(([id, { isRenewed }]) => (isRenewed ? [id] : []));
  }

  private unwrap(id: number, { wrapped, previous_wrapped, is_renewed }: WrappedKey): PersonalKey {
    const openKey = (key: Buffer) => this.masterKeys.open(PURPOSE, key, getKeyContext(id));
    return {
      current: openKey(wrapped),
      previous: previous_wrapped && openKey(previous_wrapped),
      isRenewed: is_renewed,
    };
  }

  /** Opens with cached keys, then with newly loaded ones: another process may have sealed with a newer key. */
  private async openWithRetry<R>(
    subjectIds: number[],
    open: (keys: Map<number, PersonalKey>) => R,
  ): Promise<R> {
    const keys = await this.find(subjectIds);
    try {
      return open(keys);
    } catch {
      for (const id of subjectIds) this.cache.delete(id);
      return open(await this.find(subjectIds));
    }
  }

  /**
   * Finds the keys of people.
   * @throws UnavailableError when the database responds too slowly to tell which keys still exist
   */
  private async find(
    subjectIds: Iterable<number>,
    queryKeys: KeyQuery = (statement) => query<KeyRow>(this.pool, statement),
  ): Promise<Map<number, PersonalKey>> {
    const ids = new Set(subjectIds);
    for (let tries = 1; tries <= FIND_TRIES; tries++) {
      const requestedAt = performance.now();
      const keys = await this.findOnce(ids, queryKeys, requestedAt);
      if (performance.now() - requestedAt < MAX_READ_MS) return keys;
    }
    throw new UnavailableError('The database responds too slowly');
  }

  private async findOnce(
    ids: Set<number>,
    queryKeys: KeyQuery,
    requestedAt: number,
  ): Promise<Map<number, PersonalKey>> {
    const keys = new Map<number, PersonalKey>();
    const missing: number[] = [];
    for (const id of ids) {
      if (id === NOBODY) {
        const current = this.masterKeys.getDataKey('texts about nobody');
        keys.set(id, { current, previous: null, isRenewed: false });
        continue;
      }
      const key = this.findCached(id);
      if (key) keys.set(id, key);
      else missing.push(id);
    }
    if (missing.length > 0) {
      const rows = await queryKeys({
        name: 'personal_keys_load',
        text: `select subject_id, wrapped, previous_wrapped, is_renewed from personal_keys
               where subject_id = any ($1)`,
        values: [missing],
      });
      for (const row of rows) {
        const key = this.unwrap(row.subject_id, row);
        this.cacheKey(row.subject_id, key, requestedAt);
        keys.set(row.subject_id, key);
      }
    }
    return keys;
  }

  /**
   * Seals the personal part of events as base64.
   * @param heldKeys keys by person; the commit becomes a conflict if they are no longer the same
   * @throws RejectedError when the person was erased
   */
  sealEvents(events: NewEvent[], heldKeys?: Map<number, PersonalKey>): Awaitable<NewEvent[]> {
    const sealed = heldKeys && sealPersonalParts(heldKeys, events, this.subjects);
    if (sealed) return sealed;
    const ids = this.subjects.listInPersonalParts(events);
    if (ids.length === 0) return events;
    return this.find(ids).then((keys) => {
      const sealedEvents = sealPersonalParts(keys, events, this.subjects);
      if (!sealedEvents) throw this.subjects.createErasedError();
      return sealedEvents;
    });
  }

  /** Opens the personal part of events. Without a key, `personal` is null. */
  async openEvents<E extends NewEvent>(events: E[]): Promise<E[]> {
    const ids = this.subjects.listInPersonalParts(events);
    if (ids.length === 0) return events;
    return this.openWithRetry(ids, (keys) =>
      events.map((event) => {
        const id = this.subjects.findInPersonalPart(event.data);
        if (id === undefined) return event;
        const personal = openPersonalPart(keys.get(id), event);
        return { ...event, data: { ...event.data, personal } };
      }),
    );
  }

  /**
   * Opens the personal part of events for a projection, which reads it of few events: each is decrypted only when it is
   * read.
   */
  async openEventsLazily<E extends NewEvent>(events: E[]): Promise<E[]> {
    const ids = this.subjects.listInPersonalParts(events);
    if (ids.length === 0) return events;
    // A part that is opened later cannot be retried with newer keys.
    for (const id of ids) this.cache.delete(id);
    const keys = await this.find(ids);
    return events.map((event) => {
      const id = this.subjects.findInPersonalPart(event.data);
      if (id === undefined) return event;
      const { personal: _, ...plain } = event.data;
      return {
        ...event,
        data: {
          ...plain,
          get personal() {
            return openPersonalPart(keys.get(id), event);
          },
        },
      };
    });
  }

  /** Seals a text about one person for one of our tables, outside events. */
  async sealText(
    subjectId: number,
    text: string | Buffer,
    context: string,
  ): Promise<Buffer | undefined> {
    const key = (await this.load([subjectId])).get(subjectId);
    return key && seal(key, typeof text === 'string' ? Buffer.from(text) : text, context);
  }

  async openText(subjectId: number, sealed: Buffer, context: string): Promise<string | undefined> {
    return (await this.openAll([{ subjectId, sealed, context }]))[0]?.toString();
  }

  /**
   * Seals texts for receivers that may repeat them later. Returns them in order, and undefined where there is nothing
   * to seal, the person was erased, or their key was renewed.
   */
  async sealAll(
    texts: { subjectId: number; plain: Buffer | null; context: string }[],
  ): Promise<(Buffer | undefined)[]> {
    const sealable = texts.filter(({ plain }) => plain !== null);
    if (sealable.length === 0) return texts.map(() => undefined);
    const keys = await this.find(sealable.map(({ subjectId }) => subjectId));
    return texts.map(({ subjectId, plain, context }) => {
      const key = keys.get(subjectId);
      if (!key || key.isRenewed || plain === null) return undefined;
      return seal(key.previous ?? key.current, plain, context);
    });
  }

  /** Opens texts. Returns them in order, and undefined where the key was destroyed. */
  async openAll(
    texts: { subjectId: number; sealed: Buffer; context: string }[],
  ): Promise<(Buffer | undefined)[]> {
    return this.openWithRetry(
      texts.map(({ subjectId }) => subjectId),
      (keys) =>
        texts.map(({ subjectId, sealed, context }) =>
          openWithKey(keys.get(subjectId), sealed, context),
        ),
    );
  }

  /** Creates the claim of a value. The value is normalized already: equal values must be equal texts. */
  createClaim(accountId: number, kind: string, value: string, stream: string): Claim {
    const key = this.masterKeys.getDataKey('claims');
    return { kind, value: fingerprint(key, accountId, kind, value), stream };
  }
}
