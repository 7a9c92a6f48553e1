import fc from 'fast-check';
import { Entries, RecordedValue, Literal, MARKER, Moment } from './json.js';

export type Schema = {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  examples?: unknown[];
};

export type Resolve = (schema: Schema) => Schema;

/** Length of the marker that replaces one character. */
export const MARKER_LENGTH = 10;
/** Used for fields without a documented limit. */
const LONG = 400;

/** Fields that contain the id of a record of the store. */
const KIND_OF: Record<string, string> = {
  card_id: 'cards',
  card_ids: 'cards',
  location_ids: 'locations',
  reward_id: 'rewards',
  location_id: 'locations',
  customer_id: 'customers',
  customer_card_id: 'customer_cards',
  code: 'codes',
  from_customer_id: 'customers',
  cursor: 'cursors',
  after: 'events',
};

/** Small, so that the same value comes up again. */
const small = fc.nat({ max: 5 });

/** Often the same one, because repeated changes to one record reach deeper states. */
export const which = fc.oneof(
  { weight: 1, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.nat({ max: 7 }) },
);

const later = (...seconds: number[]) => fc.constantFrom(...seconds).map((s) => new Moment(s));

export const emails = fc.oneof(
  small.map((n) => `p${n}@${MARKER}.example`),
  fc.nat({ max: 99_999 }).map((n) => ` P${n}@${MARKER}.example `),
);

export const phones = fc.oneof(
  small.map((n) => `+49151123456${n}${n}`),
  small.map((n) => `(030) 123-4${n}5`),
  fc.integer({ min: 10_000, max: 99_999 }).map((n) => `+1 212 55${n}`),
);

export const externalIds = fc.oneof(
  small.map((n) => `A-${n}`),
  small,
);

/** Values that the document leaves to the field's name. */
const BY_NAME: Record<string, fc.Arbitrary<unknown>> = {
  occurred_at: later(0, 0, 60, 200, -1, 86_400),
  expires_at: fc.oneof(
    { weight: 1, arbitrary: later(-86_400, -1, 86_400) },
    { weight: 3, arbitrary: fc.constantFrom('2090-01-01', '9999-12-31T09:59:59.999Z') },
  ),
  events: fc.constantFrom(
    ['*'],
    ['stamp.earned'],
    ['stamp.earned', 'reward.redeemed', 'stamp.earned'],
  ),
  event: fc.constantFrom(null, null, 'stamp.earned'),
  stamps: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.constantFrom('2', 100)),
  time_zone: fc.constantFrom('UTC', 'Europe/Berlin', 'Pacific/Kiritimati', 'America/St_Johns'),
  locale: fc.constantFrom('en', 'de', 'pt-BR', 'ar'),
  country: fc.constantFrom('DE', 'us', 'BR', null),
  phone: phones,
  email: emails,
  birthday: fc.constantFrom('1990-05-31', '2000-02-29', '1900-01-01', '1904-02-29', '0001-01-01'),
  external_id: externalIds,
  external_ref: fc.oneof(
    small.map((n) => `receipt ${n}`),
    fc.nat({ max: 99_999 }).map((n) => `receipt ${n}`),
  ),
  search: fc.constantFrom(
    'anna',
    '%',
    '_',
    '+49',
    '123',
    'A-1',
    MARKER,
    'ß',
    'İ',
    '\\',
    "' or 1=1",
  ),
  limit: fc.constantFrom(1, 2, 250, '3'),
  headers: fc.dictionary(
    fc.constantFrom('X-Api-Key', 'x-shop', 'Authorization'),
    fc.constantFrom('a b', '•••', 'x'),
    { maxKeys: 2 },
  ),
};

/** Text containing a marker that shows which store it belongs to, wherever it turns up. */
export function markedText(max: number): fc.Arbitrary<string> {
  const room = Math.max(0, max - MARKER_LENGTH);
  const filled = fc.oneof(
    { weight: 6, arbitrary: fc.string({ maxLength: Math.min(room, 12), unit: 'grapheme-ascii' }) },
    {
      weight: 2,
      arbitrary: fc.constantFrom(
        ...PECULIAR_TEXTS.filter((peculiarText) => peculiarText.length <= room),
      ),
    },
    { weight: 1, arbitrary: fc.constantFrom('😀'.repeat(room), 'x'.repeat(room)) },
  );
  return filled.map((text) => MARKER + text);
}

const times = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom(-86_400, -1, 0, 60, 200, 86_400).map((s) => new Moment(s)),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '2028-02-29T23:59:59Z',
      '2026-06-30 12:00',
      '2030-01-01',
      '2026-12-31T23:59:59.999999999+14:00',
      '9999-12-31T09:59:59.999Z',
      '1970-01-01T00:00:00-12:00',
    ),
  },
);

/** Values that the field accepts, also in the other spellings that clients send. */
export function validValue(
  name: string,
  rawSchema: Schema,
  resolve: Resolve,
): fc.Arbitrary<unknown> {
  const schema = resolve(rawSchema);
  const types = new Set([schema.type ?? []].flat());
  const kind = types.has('array') ? undefined : KIND_OF[name];
  const named = BY_NAME[name];
  const orNull = (values: fc.Arbitrary<unknown>) =>
    types.has('null')
      ? fc.oneof({ weight: 9, arbitrary: values }, { weight: 1, arbitrary: fc.constant(null) })
      : values;
  if (kind !== undefined)
    return orNull(
      (name === 'reward_id' ? which : small).map((nth) => new RecordedValue(kind, nth, false)),
    );
  if (name === 'stamps' && schema.minimum !== undefined && schema.minimum < 0) {
    return fc.constantFrom(-100, -2, -1, 1, 2, '-1', '+3', 5);
  }
  if (named !== undefined) return orNull(named);
  if (schema.enum) return orNull(fc.constantFrom(...schema.enum));
  if (schema.properties) return validObject(schema, resolve);
  if (types.has('array')) {
    const items = validValue(name, schema.items ?? {}, resolve);
    const { minItems: minLength = 0, maxItems: maxLength = Math.max(3, minLength) } = schema;
    return orNull(fc.array(items, { minLength, maxLength }));
  }
  if (types.has('object')) return metadata;
  if (types.has('boolean')) return fc.constantFrom(true, false, 1, 0, 'true', 'false', '1', '0');
  if (types.has('integer')) return orNull(integers(schema));
  if (types.has('number')) {
    const { minimum: min = 0, maximum: max = 100 } = schema;
    return orNull(
      fc.oneof(fc.constantFrom(min, max, String(max)), fc.integer({ min, max }), fc.constant(12.5)),
    );
  }
  if (schema.format === 'date-time' || name === 'from' || name === 'to') return orNull(times);
  if (schema.format === 'uri') {
    return small.map((n) =>
      n < 3 ? new RecordedValue('targets', 0, false) : `https://r${n}.${MARKER}.example/hook`,
    );
  }
  if (schema.pattern !== undefined) return orNull(fc.stringMatching(new RegExp(schema.pattern)));
  return orNull(markedText(schema.maxLength ?? LONG));
}

function integers({ minimum: min = 0, maximum: max = Number.MAX_SAFE_INTEGER }: Schema) {
  const usual = fc.integer({ min, max: Math.min(max, min + 12) });
  return fc.oneof(
    { weight: 8, arbitrary: usual },
    { weight: 1, arbitrary: usual.map((n) => ` +${n} `) },
    { weight: 1, arbitrary: fc.constantFrom(min, max) },
  );
}

const metadata = fc.dictionary(
  fc.constantFrom('a', 'b', 'ü', 'long key', '$', ''),
  fc.oneof(
    fc.constantFrom(null, true, 0, 1.5, -1e300, MARKER),
    fc.string({ maxLength: 5 }),
    fc.constant([{}]),
  ),
  { maxKeys: 3 },
);

/** Everything required and a few of the rest; with more, some rule between fields would refuse nearly all. */
function validObject(schema: Schema, resolve: Resolve): fc.Arbitrary<object> {
  const { properties = {}, required = [] } = schema;
  const fields = Object.entries(properties).map(([name, field]) => {
    const values = validValue(name, field, resolve);
    return [name, required.includes(name) ? values.filter((value) => value !== null) : values];
  });
  const others = Object.keys(properties).filter((name) => !required.includes(name));
  return fc
    .tuple(
      fc.record(Object.fromEntries(fields) as Record<string, fc.Arbitrary<unknown>>),
      fc.subarray(others, { maxLength: Math.min(4, others.length) }),
    )
    .map(([whole, chosen]) =>
      Object.fromEntries(
        Object.entries(whole).filter(([name]) => required.includes(name) || chosen.includes(name)),
      ),
    );
}

/** Generates valid objects with errors added: wrong, missing, repeated or unknown fields. */
export function invalidObject(rawSchema: Schema, resolve: Resolve): fc.Arbitrary<unknown> {
  const schema = resolve(rawSchema);
  const fields = Object.entries(schema.properties ?? {});
  const invalidFields = fc.array<readonly [string, unknown]>(
    fc.oneof(
      ...fields.map(([name, field]) =>
        hostileValue(field, resolve).map((value) => [name, value] as const),
      ),
      fc.tuple(fc.constantFrom('__proto__', 'constructor', 'toString', 'id', ''), anything),
    ),
    { minLength: 1, maxLength: 3 },
  );
  // The fields inside a wrapper are the ones that matter.
  const inner = fields
    .filter(([, field]) => resolve(field).properties)
    .map(([name, field]) => invalidObject(field, resolve).map((value) => [[name, value] as const]));
  const wrong =
    inner.length === 0 ? invalidFields : fc.oneof(...inner, ...inner, ...inner, invalidFields);
  return fc
    .record({
      valid: validObject(schema, resolve),
      wrong,
      missing: fc.subarray(schema.required ?? []),
      twice: fc.boolean(),
    })
    .map(({ valid, wrong, missing, twice }) => {
      const names = new Set(wrong.map(([name]) => name));
      const entries = Object.entries(valid).filter(
        ([name]) => twice || (!names.has(name) && !missing.includes(name)),
      );
      return new Entries([...entries, ...wrong]);
    });
}

const PECULIAR_TEXTS = [
  'مرحبا \u202Eabc\u202C',
  'Zoe\u0308 e\u0301\u0301\u0301',
  '👩‍👩‍👧‍👦🏳️‍🌈',
  'ﬁ ß İ ı ſ K Å',
  '<script>alert(1)</script>',
  "Robert'); drop table customers;--",
  '${jndi:ldap://x} {{7*7}} %s %n',
  'a\r\nb\tc\u2028d\u0085',
  '\uFEFFbom\u200B\u00AD',
  '\u0001\u001F\u007F',
  '\uFFFE\uFFFF\u{10FFFF}',
  'null',
];

const HOSTILE_TEXTS = [
  '',
  ' ',
  '\u3000\u00A0',
  'a\0b',
  '\uD800',
  'x\uDC00y',
  'NaN',
  '-Infinity',
  '1e3',
  '0x10',
  '1_000',
  '③',
  '12345678901234567890123',
  'x'.repeat(256),
  '😀'.repeat(300),
  'e\u0301'.repeat(2_000),
  '0000-01-01',
  '0000-12-31T23:59:59+23:59',
  '0000-01-01T00:00:00+14:00',
  '2026-02-29',
  '2100-02-29T00:00:00Z',
  '2026-13-01',
  '2026-06-30T24:00:00Z',
  '2026-06-30T23:59:60Z',
  '9999-12-31T23:59:59.999-12:00',
  '9999-12-31',
  '-000001-01-01T00:00:00Z',
  '+010000-01-01T00:00:00Z',
  '2026-01-01T00:00:00+99:99',
  '#12',
  '#GGGGGG',
  '#ABCDEF00',
  'red',
  '+',
  '++49',
  '+49',
  '00000000000000000000000000',
  '+999999999999999999999',
  'a@b',
  '@',
  'a@b@c.example',
  '"a b"@c.example',
  'a@[127.0.0.1]',
  'ü@ü.example',
  `${'a'.repeat(300)}@b.example`,
  'javascript:alert(1)',
  'https://user:pass@x.example/',
  'https://0x7f000001/',
  'https://[::ffff:10.0.0.1]/',
  'https://localhost/',
  'https://x.example:99999/',
  'http://169.254.169.254/latest',
  'https:///',
  'https://ⓔⓧⓐⓜⓟⓛⓔ.example/%00',
  'file:///etc/passwd',
];

export const anything: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -1,
    1,
    1.5,
    21,
    22,
    101,
    2 ** 31,
    -(2 ** 31) - 1,
    2 ** 53 - 1,
    2 ** 53,
    [],
    {},
    [[]],
    [null],
    ['*'],
    [{}],
    { a: { b: null } },
  ),
  fc
    .constantFrom('1e400', '-1e400', '-0', '1e-400', '9223372036854775808', '1.0', '1E2', '0.1e1')
    .map((text) => new Literal(text)),
  fc.constantFrom(...HOSTILE_TEXTS),
  fc.constantFrom(...PECULIAR_TEXTS),
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.jsonValue({ maxDepth: 2 }),
  fc
    .constantFrom('__proto__', 'constructor', 'a\0', '\uD800', 'x'.repeat(300))
    .map((key) => new Entries([[key, { toString: 1 }]])),
  fc.constantFrom(15, 17, 1_000, 9_000).map((depth) => nestedArray(depth)),
  fc
    .constantFrom(51, 5_000)
    .map((length) => new Entries(Array.from({ length }, (_, i) => [`k${i}`, i] as const))),
  fc.constantFrom(3, 101, 5_000).map((length) => Array.from({ length }, () => ({ value: 'x' }))),
);

function nestedArray(depth: number): Literal {
  return new Literal('['.repeat(depth) + ']'.repeat(depth));
}

/** Just outside of what the field accepts, or nowhere near it. */
function hostileValue(rawSchema: Schema, resolve: Resolve): fc.Arbitrary<unknown> {
  const { minimum, maximum, maxLength, items } = resolve(rawSchema);
  const edges: unknown[] = [
    ...(minimum === undefined ? [] : [minimum - 1, String(minimum - 1), minimum + 0.5]),
    ...(maximum === undefined ? [] : [maximum + 1, `${maximum}.0`]),
    ...(maxLength === undefined ? [] : ['x'.repeat(maxLength), 'y'.repeat(maxLength + 1)]),
  ];
  return fc.oneof(
    { weight: 3, arbitrary: anything },
    ...(edges.length > 0 ? [{ weight: 2, arbitrary: fc.constantFrom(...edges) }] : []),
    ...(items
      ? [{ weight: 4, arbitrary: fc.array(hostileValue(items, resolve), { maxLength: 3 }) }]
      : []),
    ...(resolve(items ?? {}).properties
      ? [{ weight: 4, arbitrary: fc.array(invalidObject(items ?? {}, resolve), { maxLength: 3 }) }]
      : []),
    {
      weight: 2,
      arbitrary: fc
        .tuple(
          fc.constantFrom('cards', 'rewards', 'customers', 'locations', 'cursors'),
          small,
          fc.boolean(),
        )
        .map(([kind, nth, foreign]) => new RecordedValue(kind, nth, foreign)),
    },
  );
}
