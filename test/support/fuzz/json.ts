/** Values that are resolved when a request is sent. */
export type SendContext = {
  marker: string;
  now: number;
  /** The id of a record, or a text such as a cursor. */
  find: (kind: string, nth: number, foreign: boolean) => number | string;
};

/** A placeholder in texts for the marker of the store in which the request is made. */
export const MARKER = '\uE000';

/** One of the records created so far, by this store or by the other one. */
export class RecordedValue {
  constructor(
    readonly kind: string,
    readonly nth: number,
    readonly foreign: boolean,
  ) {}
}

/** A time this many seconds from the moment of sending. */
export class Moment {
  constructor(readonly seconds: number) {}
}

/** JSON that JavaScript never writes: 1e400, -0, numbers with more digits than a double holds. */
export class Literal {
  constructor(readonly text: string) {}
}

/** An object whose keys may repeat or be called __proto__. */
export class Entries {
  constructor(readonly entries: (readonly [string, unknown])[]) {}
}

export function jsonText(value: unknown, around: SendContext): string {
  const inner = (item: unknown) => jsonText(item, around);
  if (value instanceof Literal) return value.text;
  if (value instanceof RecordedValue || value instanceof Moment) return inner(plain(value, around));
  if (value instanceof Entries) {
    return `{${value.entries.map(([key, item]) => `${JSON.stringify(key)}:${inner(item)}`).join(',')}}`;
  }
  if (Array.isArray(value)) return `[${value.map(inner).join(',')}]`;
  if (typeof value === 'object' && value !== null) return inner(new Entries(Object.entries(value)));
  return JSON.stringify(typeof value === 'string' ? marked(value, around) : value);
}

/** The same in a path or a query, before it is escaped. */
export function plainText(value: unknown, around: SendContext): string {
  const plainValue = plain(value, around);
  if (plainValue instanceof Literal) return plainValue.text;
  return typeof plainValue === 'object' && plainValue !== null
    ? jsonText(plainValue, around)
    : String(plainValue);
}

function plain(value: unknown, around: SendContext): unknown {
  if (value instanceof RecordedValue) return around.find(value.kind, value.nth, value.foreign);
  if (value instanceof Moment) return new Date(around.now + value.seconds * 1000).toISOString();
  return typeof value === 'string' ? marked(value, around) : value;
}

function marked(text: string, { marker }: SendContext): string {
  return text.replaceAll(MARKER, marker);
}
