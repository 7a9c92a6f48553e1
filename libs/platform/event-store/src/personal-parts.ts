import { open } from '#kernel/sealing.js';
import type { JsonObject, NewEvent } from './event-store.js';

/**
 * @property former opens what was sealed before, while the key is being renewed
 * @property renewed what does not open was sealed with a key that was destroyed
 */
export type PersonalKey = { current: Buffer; former: Buffer | null; renewed: boolean };

/** Event data whose `personal` part belongs to one customer. */
type PersonalData = { customerId: number; personal: object | string | null };
export type SealedEvent = { id: string; type: string; data: PersonalData };

export function openedPart(
  key: PersonalKey | undefined,
  event: Pick<NewEvent, 'id' | 'type'>,
  { personal }: PersonalData,
): JsonObject | null {
  const plain = openedBy(key, Buffer.from(String(personal), 'base64'), sealContext(event));
  return plain ? (JSON.parse(plain.toString()) as JsonObject) : null;
}

/** Undefined when the key that sealed it was destroyed. @throws when it was changed or belongs elsewhere */
export function openedBy(
  key: PersonalKey | undefined,
  sealed: Buffer,
  context: string,
): Buffer | undefined {
  if (!key) return undefined;
  const { current, former, renewed } = key;
  const keys = former ? [current, former] : [current];
  let fault: unknown;
  for (const one of keys) {
    try {
      return open(one, sealed, context);
    } catch (error) {
      fault = error;
    }
  }
  // The key may have been renewed before, and be renewed again just now.
  if (renewed) return undefined;
  throw fault;
}

/** Whether a key is the one that sealed the personal part of an event. */
export function isSealedWith(current: Buffer, event: SealedEvent): boolean {
  try {
    return openedPart({ current, former: null, renewed: false }, event, event.data) !== null;
  } catch {
    return false;
  }
}

/** The customer whom events are about, if any. */
export function customerOf(events: { data: object }[]): number | undefined {
  for (const { data } of events) {
    if ('customerId' in data && typeof data.customerId === 'number') return data.customerId;
  }
  return undefined;
}

export function isPersonal(data: unknown): data is PersonalData {
  return (
    typeof data === 'object' &&
    data !== null &&
    'personal' in data &&
    data.personal !== null &&
    'customerId' in data &&
    typeof data.customerId === 'number'
  );
}

export function* customersOf(events: NewEvent[]): Iterable<number> {
  for (const { data } of events) {
    const candidate: unknown = data;
    if (isPersonal(candidate)) yield candidate.customerId;
  }
}

export function sealContext(event: Pick<NewEvent, 'id' | 'type'>): string {
  return `${event.type} ${event.id}`;
}
