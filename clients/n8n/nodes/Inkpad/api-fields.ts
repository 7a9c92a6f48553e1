import type { IDataObject } from 'n8n-workflow';

/** The parameters that are ids of the service. Those of other systems are text, whatever they look like. */
const OWN_IDS = new Set(['cardId', 'customerCardId', 'customerId', 'locationId', 'rewardId']);
const WITHOUT_ZONE = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?$/;
const DAY_MS = 24 * 60 * 60_000;

/** Renames the parameters of a collection to fields of the API, and leaves out those that are blank. */
export function toApiFields(collection: IDataObject, timeZone: string): IDataObject {
  const fields = Object.entries(collection).flatMap(([name, value]) => {
    const isBlank = typeof value === 'string' && value.trim() === '';
    if (isBlank || value === null || value === undefined) return [];
    if (Array.isArray(value) && value.length === 0) return [];
    return [[toSnakeCase(name), toApiValue(name, value, timeZone)]];
  });
  return Object.fromEntries(fields) as IDataObject;
}

/**
 * Gives a time that has no zone the one of the workflow, and leaves any other as it is. One that comes twice is the first;
 * one that the clocks skip is read with the offset before (RFC 5545, section 3.3.5).
 */
export function toApiTime(value: unknown, timeZone: string): string {
  const text = typeof value === 'object' && value !== null ? toText(value) : String(value);
  if (!WITHOUT_ZONE.test(text)) return text;
  const clock = Date.parse(`${text.replace(' ', 'T')}Z`);
  if (Number.isNaN(clock)) return text;
  // With the offset before a change of the clocks nearby, and with that after it.
  const before = clock - getOffsetMs(clock - DAY_MS, timeZone);
  const after = clock - getOffsetMs(clock + DAY_MS, timeZone);
  const matches = [before, after].filter((at) => at + getOffsetMs(at, timeZone) === clock);
  return new Date(matches.length > 0 ? Math.min(...matches) : before).toISOString();
}

/** Expressions may give a date of n8n's, which renders itself in JSON. */
function toText(value: object): string {
  return String(JSON.parse(JSON.stringify(value)));
}

function toApiValue(name: string, value: unknown, timeZone: string): unknown {
  if (/(At|Since|To|From)$/.test(name)) return toApiTime(value, timeZone);
  return OWN_IDS.has(name) ? toOwnId(value) : value;
}

/** Converts an id that is text. One that is no id stays, for the API to say what is wrong with it. */
function toOwnId(value: unknown): unknown {
  const id = typeof value === 'string' && /^\s*\d+\s*$/.test(value) ? Number(value) : value;
  return typeof id === 'number' && !Number.isSafeInteger(id) ? value : id;
}

function toSnakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function getOffsetMs(atMs: number, timeZone: string): number {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  }).formatToParts(atMs);
  const read = (type: string) => Number(parts.find((part) => part.type === type)?.value);
  const local = Date.UTC(
    read('year'),
    read('month') - 1,
    read('day'),
    read('hour'),
    read('minute'),
    read('second'),
  );
  return local - Math.floor(atMs / 1000) * 1000;
}
