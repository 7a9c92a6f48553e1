import type { RejectedError } from '#platform/kernel/errors.js';
import { open, seal } from '#platform/kernel/sealing.js';
import type { JsonObject, NewEvent } from '../port/event-store.js';

/**
 * The key of a person.
 * @property previous opens what was sealed before, while the key is being renewed
 * @property isRenewed what does not open was sealed with a key that was destroyed
 */
export type PersonalKey = { current: Buffer; previous: Buffer | null; isRenewed: boolean };

export type SealedEvent = Pick<NewEvent, 'id' | 'type' | 'data'>;

export function openPersonalPart(
  key: PersonalKey | undefined,
  event: SealedEvent,
): JsonObject | null {
  const { personal } = event.data;
  const plain = openWithKey(key, Buffer.from(String(personal), 'base64'), getSealContext(event));
  return plain ? (JSON.parse(plain.toString()) as JsonObject) : null;
}

/**
 * Seals the personal part of events as base64.
 * @returns undefined when the key of a person is missing
 */
export function sealPersonalParts(
  keys: Map<number, PersonalKey>,
  events: NewEvent[],
  subjects: Subjects,
): NewEvent[] | undefined {
  const sealed: NewEvent[] = [];
  for (const event of events) {
    const id = subjects.findInPersonalPart(event.data);
    if (id === undefined) sealed.push(event);
    else {
      const key = keys.get(id);
      if (!key) return undefined;
      const plain = Buffer.from(JSON.stringify(event.data['personal']));
      const personal = seal(key.current, plain, getSealContext(event)).toString('base64');
      sealed.push({ ...event, data: { ...event.data, personal } });
    }
  }
  return sealed;
}

/**
 * Opens a sealed text; undefined when its key was destroyed.
 * @throws when it was changed or belongs elsewhere
 */
export function openWithKey(
  key: PersonalKey | undefined,
  sealed: Buffer,
  context: string,
): Buffer | undefined {
  if (!key) return undefined;
  const { current, previous, isRenewed } = key;
  const keys = previous ? [current, previous] : [current];
  let lastError: unknown;
  for (const candidate of keys) {
    try {
      return open(candidate, sealed, context);
    } catch (error) {
      lastError = error;
    }
  }
  // The key may have been renewed before, and be under renewal again.
  if (isRenewed) return undefined;
  throw lastError;
}

/** Tells whether a key is the one that sealed the personal part of an event. */
export function isSealedWith(current: Buffer, event: SealedEvent): boolean {
  try {
    return openPersonalPart({ current, previous: null, isRenewed: false }, event) !== null;
  } catch {
    return false;
  }
}

/** Reads from events whom they are about. The contexts that write personal data create it. */
export class Subjects {
  /**
   * @param field of the data of events, with the person's id
   * @param createErasedError refuses a command about somebody who was erased
   */
  constructor(
    private readonly field: string,
    readonly createErasedError: () => RejectedError,
  ) {}

  /** Finds the person whom events are about, if any. */
  find(events: { data: object }[]): number | undefined {
    for (const { data } of events) {
      const id = (data as Record<string, unknown>)[this.field];
      if (typeof id === 'number') return id;
    }
    return undefined;
  }

  /** Finds the person whose key seals the personal part of an event, if it has one. */
  findInPersonalPart(data: object): number | undefined {
    const { personal = null, [this.field]: id } = data as Record<string, unknown>;
    return personal !== null && typeof id === 'number' ? id : undefined;
  }

  /** Lists these people for several events. */
  listInPersonalParts(events: NewEvent[]): number[] {
    const ids: number[] = [];
    for (const { data } of events) {
      const id = this.findInPersonalPart(data);
      if (id !== undefined) ids.push(id);
    }
    return ids;
  }
}

export function getSealContext(event: Pick<NewEvent, 'id' | 'type'>): string {
  return `${event.type} ${event.id}`;
}
