import { Injectable } from '@nestjs/common';
import { randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { Pool } from 'pg';
import { customerErased } from '#kernel/errors.js';
import { fingerprint, open, seal } from '#kernel/sealing.js';
import { ask } from '#database/connection.js';
import { IdTakenError } from '#database/ids.js';
import { MasterKeys } from '#database/master-keys.js';
import type { SealedColumn } from '#database/sealed-column.js';
import type { Claim, JsonObject, NewEvent } from './event-store.js';

/** The customer id for texts that are not about a customer. Real ids begin at 1. */
export const NOBODY = 0;

const KEYS_KEPT = 20_000;
/** A key destroyed by another process is forgotten by this one within this time. */
const KEY_KEPT_MS = 5_000;

const PURPOSE = 'personal keys';
const contextOf = (customerId: unknown): string => `customer ${String(customerId)}`;

export const PERSONAL_KEYS_COLUMN: SealedColumn = {
  name: 'personal keys',
  table: 'personal_keys',
  column: 'wrapped',
  id: 'customer_id',
  idType: 'bigint',
  purpose: PURPOSE,
  contextOf,
};

type KeyRow = { customer_id: number; wrapped: Buffer };

export type Reader = (statement: {
  name: string;
  text: string;
  values: unknown[];
}) => Promise<KeyRow[]>;

/** Event data whose `personal` part belongs to one customer. */
type PersonalData = { customerId: number; personal: object | string | null };

/**
 * Every customer has a key of their own; personal fields stand in events only sealed with it.
 * Destroying the key erases the person from the whole history without touching an event.
 */
@Injectable()
export class PersonalKeys {
  private readonly known = new LRUCache<number, Buffer>({ max: KEYS_KEPT, ttl: KEY_KEPT_MS });

  constructor(
    private readonly pool: Pool,
    private readonly masterKeys: MasterKeys,
  ) {}

  /**
   * Before the customer's first event. An unused key of a refused command does no harm.
   * @throws IdTakenError
   */
  async create(customerId: number): Promise<void> {
    const key = randomBytes(32);
    const created = await ask(this.pool, {
      name: 'personal_keys_create',
      text: `insert into personal_keys (customer_id, wrapped) values ($1, $2)
             on conflict do nothing returning customer_id`,
      values: [customerId, this.masterKeys.seal(PURPOSE, key, contextOf(customerId))],
    });
    if (created.length === 0) throw new IdTakenError('customers', customerId);
    this.known.set(customerId, key);
  }

  /** A key that another instance has made. One that is there already stays. */
  async adopt(customerId: number, key: Buffer): Promise<void> {
    await ask(this.pool, {
      text: 'insert into personal_keys (customer_id, wrapped) values ($1, $2) on conflict do nothing',
      values: [customerId, this.masterKeys.seal(PURPOSE, key, contextOf(customerId))],
    });
  }

  /** @param wrapped the key as a load has just seen it; null: it was destroyed */
  remember(customerId: number, wrapped: Buffer | null): void {
    if (wrapped === null) this.known.delete(customerId);
    else if (!this.known.has(customerId)) {
      this.known.set(customerId, this.masterKeys.open(PURPOSE, wrapped, contextOf(customerId)));
    }
  }

  /** The customer was erased: this process is not to use the key any more. The others forget it in time. */
  forget(customerId: number): void {
    this.known.delete(customerId);
  }

  /**
   * Erased customers are left out. The key of NOBODY is never destroyed.
   * @param read how to query the database, for a caller that holds a connection already
   */
  async load(
    customerIds: Iterable<number>,
    read: Reader = (statement) => ask<KeyRow>(this.pool, statement),
  ): Promise<Map<number, Buffer>> {
    const keys = new Map<number, Buffer>();
    const missing: number[] = [];
    for (const id of new Set(customerIds)) {
      if (id === NOBODY) {
        keys.set(id, this.masterKeys.dataKey('texts about nobody'));
        continue;
      }
      const key = this.known.get(id);
      if (key) keys.set(id, key);
      else missing.push(id);
    }
    if (missing.length > 0) {
      const rows = await read({
        name: 'personal_keys_load',
        text: 'select customer_id, wrapped from personal_keys where customer_id = any ($1)',
        values: [missing],
      });
      for (const row of rows) {
        const key = this.masterKeys.open(PURPOSE, row.wrapped, contextOf(row.customer_id));
        this.known.set(row.customer_id, key);
        keys.set(row.customer_id, key);
      }
    }
    return keys;
  }

  /** The stored form of events: `personal` becomes sealed base64. @throws RejectedError when the person was erased */
  async sealed(events: NewEvent[]): Promise<NewEvent[]> {
    if (!events.some((event) => isPersonal(event.data))) return events;
    const keys = await this.load(customersOf(events));
    return events.map((event) => {
      const data: unknown = event.data;
      if (!isPersonal(data)) return event;
      const key = keys.get(data.customerId);
      if (!key) throw customerErased();
      const plain = Buffer.from(JSON.stringify(data.personal));
      const personal = seal(key, plain, sealContext(event)).toString('base64');
      return { ...event, data: { ...event.data, personal } };
    });
  }

  /** The reverse. Without a key, `personal` is null. */
  async opened<E extends NewEvent>(events: E[]): Promise<E[]> {
    if (!events.some((event) => isPersonal(event.data))) return events;
    const keys = await this.load(customersOf(events));
    return events.map((event) => {
      const data: unknown = event.data;
      if (!isPersonal(data)) return event;
      const personal = openedPart(keys.get(data.customerId), event, data);
      return { ...event, data: { ...event.data, personal } };
    });
  }

  /** The same for a fold, which reads `personal` of few events: each is decrypted only when it is read. */
  async openedWhenRead<E extends NewEvent>(events: E[]): Promise<E[]> {
    if (!events.some((event) => isPersonal(event.data))) return events;
    const keys = await this.load(customersOf(events));
    return events.map((event) => {
      const data: unknown = event.data;
      if (!isPersonal(data)) return event;
      const { personal: _, ...plain } = event.data;
      return {
        ...event,
        data: {
          ...plain,
          get personal() {
            return openedPart(keys.get(data.customerId), event, data);
          },
        },
      };
    });
  }

  /** Seals a text about one customer for one of our tables, outside events. */
  async sealText(
    customerId: number,
    text: string,
    context: string,
    read?: Reader,
  ): Promise<Buffer | undefined> {
    const key = (await this.load([customerId], read)).get(customerId);
    return key && seal(key, Buffer.from(text), context);
  }

  async openText(customerId: number, sealed: Buffer, context: string): Promise<string | undefined> {
    return (await this.openAll([{ customerId, sealed, context }]))[0]?.toString();
  }

  /** In the given order; undefined where there is nothing to seal, or the person was erased. */
  async sealAll(
    texts: { customerId: number; plain: Buffer | null; context: string }[],
  ): Promise<(Buffer | undefined)[]> {
    const given = texts.filter(({ plain }) => plain !== null);
    if (given.length === 0) return texts.map(() => undefined);
    const keys = await this.load(given.map(({ customerId }) => customerId));
    return texts.map(({ customerId, plain, context }) => {
      const key = keys.get(customerId);
      return key && plain !== null ? seal(key, plain, context) : undefined;
    });
  }

  /** In the given order; undefined where the person was erased. */
  async openAll(
    texts: { customerId: number; sealed: Buffer; context: string }[],
  ): Promise<(Buffer | undefined)[]> {
    const keys = await this.load(texts.map(({ customerId }) => customerId));
    return texts.map(({ customerId, sealed, context }) => {
      const key = keys.get(customerId);
      return key && open(key, sealed, context);
    });
  }

  /** `value` already normalised: equal values must be equal texts. */
  claim(accountId: number, kind: string, value: string, stream: string): Claim {
    const key = this.masterKeys.dataKey('claims');
    return { kind, value: fingerprint(key, accountId, kind, value), stream };
  }
}

function openedPart(
  key: Buffer | undefined,
  event: NewEvent,
  { personal }: PersonalData,
): JsonObject | null {
  if (!key) return null;
  const sealed = Buffer.from(String(personal), 'base64');
  return JSON.parse(open(key, sealed, sealContext(event)).toString()) as JsonObject;
}

/** The customer whom events are about, if any. */
export function customerOf(events: { data: object }[]): number | undefined {
  for (const { data } of events) {
    if ('customerId' in data && typeof data.customerId === 'number') return data.customerId;
  }
  return undefined;
}

function isPersonal(data: unknown): data is PersonalData {
  return (
    typeof data === 'object' &&
    data !== null &&
    'personal' in data &&
    data.personal !== null &&
    'customerId' in data &&
    typeof data.customerId === 'number'
  );
}

function* customersOf(events: NewEvent[]): Iterable<number> {
  for (const { data } of events) {
    const candidate: unknown = data;
    if (isPersonal(candidate)) yield candidate.customerId;
  }
}

function sealContext(event: NewEvent): string {
  return `${event.type} ${event.id}`;
}
