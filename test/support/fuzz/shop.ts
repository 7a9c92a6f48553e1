import { isDeepStrictEqual } from 'node:util';
import { normalizeIdentifier, normalizeNumber, normalizeText } from '#platform/kernel/text.js';
import { findMomentOfDay } from '#platform/kernel/zoned-time.js';
import type { ContractClient } from '../http/contract.js';
import type { ApiResponse } from '../services/service.js';
import type { SentFile } from './import-files.js';

export type Json = Record<string, unknown>;

/** A record as it was last shown. */
export type KnownRecord = {
  id: number;
  path: string;
  body: Json;
  deleted: boolean;
};

/** What a receipt number was used for. */
export type ReceiptUse = { path: string; body: Json; change: number; eventId: string };

/**
 * What a row of an import did.
 * @property before the customer before it; null: it created them
 * @property after what the row left of the customer and their cards
 * @property card the one that it carried stamps over to
 */
export type RowEffect = {
  customer: KnownRecord;
  before: Json | null;
  after: Json;
  card: { record: KnownRecord; change: number } | null;
};

/**
 * An import that was accepted.
 * @property effects by row number, of the rows that were created or updated
 */
export type KnownImport = { file: SentFile | null; effects: Map<number, RowEffect> };

/** Fields that depend on other records or on the time. */
// prettier-ignore
const DERIVED = new Set([
  'rewards_count', 'customer_cards_count', 'customer_cards', 'stamp_count', 'available_rewards',
  'card_name', 'status', 'stamps_remaining', 'progress_percentage',
  'locations_count', 'cards_count', 'customers_count', 'posters_count',
  'last_delivery_at', 'last_delivery_status', 'last_delivery_error',
]);

let shopCount = 0;

/** A store as its only clients know it: by what they sent and received. */
export class Shop {
  readonly number = ++shopCount;
  readonly marker = `mk${String(this.number).padStart(6, '0')}zz`;
  readonly records = new Map<string, KnownRecord[]>();
  readonly cursors: string[] = [];
  readonly events: string[] = [];
  /** By operation and receipt number. */
  readonly receipts = new Map<string, ReceiptUse[]>();
  /** Ids of events. */
  readonly reversed = new Set<string>();
  /** By what makes two requests the same under an Idempotency-Key. */
  readonly keyed = new Map<string, ApiResponse>();
  /** By id. */
  readonly imports = new Map<number, KnownImport>();
  /** Imported stamps, by the id of the customer card. */
  readonly importedStamps = new Map<number, number>();
  /** Ids of customer cards of which somebody has reversed an event. */
  readonly corrected = new Set<number>();
  /** Two customers are one now, and each other's paths lead to their cards: test/merging/merging follows that, not this. */
  hasMerged = false;
  /** In which dates without a time are read. */
  timeZone = 'UTC';

  constructor(readonly client: ContractClient) {}

  of(kind: string): KnownRecord[] {
    const records = this.records.get(kind) ?? [];
    this.records.set(kind, records);
    return records;
  }

  live(kind: string): KnownRecord[] {
    return this.of(kind).filter(({ deleted }) => !deleted);
  }
}

/** Whether a field shows what was sent for it, in the contract's spelling. */
export function isShown(
  name: string,
  sent: unknown,
  body: unknown,
  isNew: boolean,
  timeZone: string,
): boolean {
  if (name === 'headers') {
    // Their values are secrets.
    const [names, shownNames] = [sent ?? {}, body].map(
      (record) => new Set(Object.keys(record as Json)),
    );
    return isDeepStrictEqual(names, shownNames);
  }
  if (sent === null || (typeof sent === 'string' && normalizeText(sent) === '')) {
    return isNew || name === 'event' || body === null;
  }
  if (name === 'metadata') {
    return Object.entries(sent as Json).every(([key, value]: [string, unknown]) => {
      if (key === '__proto__' || key === 'constructor') return true;
      const listedValue = (body as Json)[key];
      return value === null
        ? listedValue === undefined
        : isDeepStrictEqual(listedValue, JSON.parse(JSON.stringify(value)));
    });
  }
  if (name === 'external_references') {
    const key = (reference: Json) =>
      `${normalizeText(String(reference['source']))} ${normalizeIdentifier(String(reference['external_id']))}`;
    const there = new Set((body as Json[]).map(key));
    return (sent as Json[]).every((reference) => there.has(key(reference)));
  }
  if (name === 'events') return isDeepStrictEqual([...new Set(sent as string[])], body);
  if (name === 'channels') {
    const names = (sent as unknown[]).map((value) => normalizeText(String(value ?? '')));
    return isDeepStrictEqual(
      names.filter((candidate) => candidate !== ''),
      body,
    );
  }
  if (name === 'card_ids' || name === 'location_ids') {
    return isDeepStrictEqual(new Set((sent as unknown[]).map(Number)), new Set(body as number[]));
  }
  if (name === 'event') return sent === body || sent === '*';
  if (name === 'auxiliary_fields') {
    const text = (value: unknown) =>
      typeof value === 'string' && normalizeText(value) ? normalizeText(value) : null;
    const pair = (field: Json | null) => [text(field?.['label']), text(field?.['value'])];
    const filled = (sent as (Json | null)[])
      .map(pair)
      .filter((parts) => parts.some((part) => part !== null));
    return isDeepStrictEqual(filled, (body as Json[]).map(pair));
  }
  if (typeof body === 'boolean') return [true, 1, '1', 'true'].includes(sent as never) === body;
  if (typeof body === 'number') return Number(normalizeNumber(String(sent))) === body;
  if (typeof sent !== 'string' || typeof body !== 'string') return false;
  const text = normalizeText(sent);
  if (name.endsWith('_at')) return timeOf(text, timeZone) === Date.parse(body);
  // A date alone is the beginning of its day in UTC.
  if (name === 'inactive_since') {
    const isDate = /^\d{4}-\d{2}-\d{2}$/.test(text);
    return (isDate ? Date.parse(text) : timeOf(text, timeZone)) === Date.parse(body);
  }
  if (name.endsWith('_color'))
    return body === `#${text.slice(1).replace(/^(.)(.)(.)$/, '$1$1$2$2$3$3')}`.toUpperCase();
  // Its beginning depends on the store's country.
  if (name === 'phone') return digitsAtEnd(text) === digitsAtEnd(body);
  if (name === 'email' || name === 'external_ref') return normalizeIdentifier(sent) === body;
  if (['time_zone', 'locale', 'country'].includes(name)) {
    return text.toLowerCase() === body.toLowerCase();
  }
  return text === body;
}

function digitsAtEnd(phone: string): string {
  return phone.replaceAll(/\D/g, '').slice(-6);
}

/** Reads a time. A date alone is the end of its day: only `expires_at` is drawn as one. */
function timeOf(text: string, timeZone: string): number {
  if (/^\d{4}-\d{2}-\d{2}$/.test(text)) return findMomentOfDay(text, 'end', timeZone);
  const iso = text.replace(' ', 'T');
  return Date.parse(iso.includes('T') && !/(Z|[+-]\d{2}:?\d{2})$/i.test(iso) ? `${iso}Z` : iso);
}

export function own(body: Json): Json {
  return without(body, ...DERIVED);
}

export function without(body: Json, ...names: string[]): Json {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)));
}

/** The code of one of the customer cards. */
export function codeOf(cards: KnownRecord[], nth: number): string {
  return String(cards[nth % cards.length]?.body['code'] ?? 'none');
}

export function findByCode(shop: Shop, code: string): KnownRecord | undefined {
  return shop.live('customer_cards').find(({ body }) => body['code'] === code.toUpperCase());
}
