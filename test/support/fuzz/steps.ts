import fc from 'fast-check';
import { createUploadArbitrary, type FileSpec } from './import-files.js';
import { RecordedValue, Literal, Moment } from './json.js';
import { anything, invalidObject, validValue, which, type Resolve, type Schema } from './values.js';

type Json = Record<string, unknown>;
type Parameter = { $ref?: string; name: string; in: string; schema: Schema };
type Operation = {
  operationId: string;
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: Schema }> };
};

export type Body =
  | { kind: 'none' }
  /** @property isValid the schema allows it */
  | { kind: 'json'; value: unknown; isValid: boolean; chunked: boolean }
  | { kind: 'bytes'; bytes: Uint8Array<ArrayBuffer>; type: string | null }
  | { kind: 'file'; file: FileSpec };

/** One request, described without the ids that only a running service knows. */
export type Step = {
  /** Null for an operation that the document does not contain. */
  id: string | null;
  method: string;
  /** With parameter names in braces. */
  path: string;
  /** In which of the two stores. */
  store: 0 | 1;
  token: 'own' | 'other' | 'none' | 'wrong';
  /** Which of the records created so far, and whether to use one of the other store. */
  nth: number;
  foreign: boolean;
  /** The path segment in place of an id. */
  odd: Record<string, string>;
  query: (readonly [string, unknown])[];
  body: Body;
  key: 'none' | 'fresh' | { shared: string };
  headers: Record<string, string>;
  /** Sent a second time, as by clients that got no response. */
  twice: boolean;
};

/** How often each operation is chosen, so that a store gets some depth. */
const WEIGHTS: [RegExp, number][] = [
  [/^stamp/, 12],
  [/^redeem/, 8],
  [/^(adjust|reverse|executeBatch)/, 5],
  [/^createImport/, 12],
  [/^startImport/, 16],
  [/^undoImport/, 8],
  [/^(create|enrol)/, 5],
  [/^update/, 4],
  [/./, 2],
];

const RARE = fc.nat({ max: 19 }).map((n) => n === 0);

const ODD_IDS = [
  '0',
  '-1',
  '01',
  '1.0',
  '1e3',
  'abc',
  '9007199254740992',
  '9223372036854775808',
  '99999999999999999999999',
  '%00',
  '%2F',
  '%zz',
  '%C0%80',
  '%F0%9F%98%80',
  '..%2f..',
  '%20',
  ':id',
  'null',
  '1;a=b',
  '1'.repeat(3_000),
];

/** Creates an arbitrary for any request to any operation of an OpenAPI document. */
export function createStepArbitrary(document: Json): fc.Arbitrary<Step> {
  const at = (reference: string) =>
    reference
      .slice(2)
      .split('/')
      .reduce<unknown>((value, part) => (value as Json)[part], document);
  const resolve: Resolve = (schema) =>
    schema.$ref === undefined ? schema : { ...(at(schema.$ref) as Schema) };
  const paths = document['paths'] as Record<string, Record<string, Operation>>;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      weight: WEIGHTS.find(([pattern]) => pattern.test(operation.operationId))?.[1] ?? 1,
      arbitrary: requestOf(method.toUpperCase(), path, operation, resolve, at),
    })),
  );
  return fc.oneof(...operations, { weight: 2, arbitrary: strayRequest(Object.keys(paths)) });
}

function requestOf(
  method: string,
  path: string,
  operation: Operation,
  resolve: Resolve,
  at: (reference: string) => unknown,
): fc.Arbitrary<Step> {
  const parameters = (operation.parameters ?? []).map((parameter) =>
    parameter.$ref === undefined ? parameter : (at(parameter.$ref) as Parameter),
  );
  const schema = operation.requestBody?.content['application/json']?.schema;
  const steps = fc.record({
    ...actionDetails(path),
    id: fc.constant(operation.operationId),
    method: fc.constant(method),
    query: queryOf(
      parameters.filter((parameter) => parameter.in === 'query'),
      resolve,
    ),
    body: method === 'GET' ? fc.constant<Body>({ kind: 'none' }) : bodyOf(schema, resolve),
  });
  if (operation.operationId !== 'createImport') return steps;
  const uploads = fc
    .tuple(steps, createUploadArbitrary())
    .map(([step, { query, file }]): Step => ({ ...step, query, body: { kind: 'file', file } }));
  return fc.oneof({ weight: 9, arbitrary: uploads }, { weight: 1, arbitrary: steps });
}

/** Other methods on known paths, and unknown paths. */
function strayRequest(paths: string[]): fc.Arbitrary<Step> {
  const tails = ['', '/', '//', '/1/2/3', '/%zz', '?', '/constructor', '/__proto__'];
  return fc
    .tuple(
      fc.constantFrom(...paths, '/api/v1', '/api/v1/accounts/{account_id}/nothing'),
      fc.constantFrom(...tails),
    )
    .chain(([knownParts, tail]) => {
      const path = knownParts + tail;
      return fc.record({
        ...actionDetails(path),
        id: fc.constant(null),
        method: fc.constantFrom('PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS', 'PROPFIND'),
        query: fc.constant<Step['query']>([]),
        body: fc.constant<Body>({ kind: 'none' }),
      });
    });
}

function actionDetails(path: string) {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  return {
    path: fc.constant(path),
    store: fc.constantFrom<0 | 1>(0, 0, 0, 1),
    token: fc.oneof(
      { weight: 40, arbitrary: fc.constant<Step['token']>('own') },
      { weight: 3, arbitrary: fc.constantFrom<Step['token']>('other', 'none', 'wrong') },
    ),
    nth: which,
    foreign: RARE,
    odd:
      names.length === 0
        ? fc.constant({})
        : fc.oneof(
            { weight: 15, arbitrary: fc.constant({}) },
            {
              weight: 1,
              arbitrary: fc.dictionary(fc.constantFrom(...names), fc.constantFrom(...ODD_IDS), {
                minKeys: 1,
                maxKeys: 1,
              }),
            },
          ),
    key: fc.oneof(
      { weight: 8, arbitrary: fc.constant<Step['key']>('none') },
      { weight: 3, arbitrary: fc.constant<Step['key']>('fresh') },
      {
        weight: 2,
        arbitrary: fc
          .constantFrom(
            'one',
            'two',
            '"one"',
            '',
            ' ',
            '"',
            '""',
            'x'.repeat(255),
            'x'.repeat(256),
            'ü',
          )
          .map((shared): Step['key'] => ({ shared })),
      },
    ),
    headers: fc.oneof({ weight: 6, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: headers }),
    twice: RARE,
  };
}

const headers = fc
  .record(
    {
      accept: fc.constantFrom(
        'application/problem+json',
        'application/json;q=0',
        'text/html',
        '*/*;q=0.1, application/problem+json',
        'nothing',
        ',;=',
        'application/json;q=abc',
        '',
      ),
      'accept-encoding': fc.constantFrom('gzip', 'br', 'identity;q=0, *;q=0', 'deflate', 'unknown'),
      'accept-language': fc.constantFrom('xx', '*', 'de-DE,de;q=0.9'),
      'x-request-id': fc.constantFrom('', ' ', 'a b', 'ü', 'x'.repeat(129), '<script>', 'a, b'),
      'if-none-match': fc.constantFrom('*', '"x"'),
      range: fc.constant('bytes=0-1'),
      origin: fc.constantFrom('https://elsewhere.example', 'null'),
      'x-forwarded-for': fc.constantFrom('1.2.3.4', 'nonsense', '::1, 10.0.0.1'),
      'x-http-method-override': fc.constant('DELETE'),
      'content-language': fc.constant('de'),
    },
    { requiredKeys: [] },
  )
  .map((headers) => headers as Record<string, string>);

function queryOf(parameters: Parameter[], resolve: Resolve): fc.Arbitrary<Step['query']> {
  const knownParameters = parameters.map(({ name, schema }) =>
    fc
      .oneof(
        { weight: 5, arbitrary: validValue(name, schema, resolve) },
        { weight: 1, arbitrary: oddQueryValue },
      )
      .map((value) => [name, value] as const),
  );
  const unknown = fc.tuple(
    fc.constantFrom('unknown', 'limit[]', 'a.b', '__proto__', '%00', ''),
    oddQueryValue,
  );
  const parameterArbitrary =
    knownParameters.length > 0
      ? fc.oneof(
          { weight: 8, arbitrary: fc.oneof(...knownParameters) },
          { weight: 1, arbitrary: unknown },
        )
      : unknown;
  const some = fc.array(parameterArbitrary, { minLength: 1, maxLength: 3 });
  return fc.oneof(
    { weight: 20, arbitrary: fc.constant<Step['query']>([]) },
    { weight: knownParameters.length > 1 ? 20 : 2, arbitrary: some },
  );
}

const oddQueryValue: fc.Arbitrary<unknown> = fc.oneof(
  // Literals go into the query unchanged; everything else is escaped.
  fc
    .constantFrom('%00', '%zz', '%', '%C0%80', '%ED%A0%80', '+', '&&', '=', '[]')
    .map((text) => new Literal(text)),
  fc.constantFrom(
    '',
    ' ',
    '0',
    '-1',
    '1.5',
    '251',
    '99999999999999999999',
    'NaN',
    'x'.repeat(2_000),
    'a\0b',
  ),
  fc
    .tuple(fc.constantFrom('cursors', 'events', 'cards'), which, fc.boolean())
    .map(([kind, n, foreign]) => new RecordedValue(kind, n, foreign)),
  fc.constant(new Moment(0)),
);

const utf8 = (text: string) => new TextEncoder().encode(text);
const BYTES: (readonly [string | null, Uint8Array<ArrayBuffer>])[] = [
  ['application/json', utf8('{')],
  ['application/json', utf8('{"stamps":1}}')],
  ['application/json', utf8("{'stamps':1}")],
  ['application/json', utf8('{"stamps":01}')],
  ['application/json', utf8('\uFEFF{"stamps":1}')],
  ['application/json', utf8('null')],
  ['application/json', utf8('[]')],
  ['application/json', utf8('"text"')],
  ['application/json', utf8('1e400')],
  ['application/json', utf8(' ')],
  ['application/json', utf8('{"a":'.repeat(50_000))],
  ['application/json', utf8('['.repeat(200_000) + ']'.repeat(200_000))],
  ['application/json', utf8(`{"card":${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}}`)],
  ['application/json', new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])],
  ['application/json', new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22])],
  ['application/json; charset=utf-16', new Uint8Array([0xff, 0xfe, 0x7b, 0, 0x7d, 0])],
  ['application/json;charset=UTF-8', utf8('{"stamps":1}')],
  ['APPLICATION/JSON', utf8('{"stamps":1}')],
  ['application/merge-patch+json', utf8('{"stamps":1}')],
  ['application/x-www-form-urlencoded', utf8('stamps=1')],
  ['multipart/form-data; boundary=x', utf8('--x--')],
  ['text/plain', utf8('{"stamps":1}')],
  ['nonsense', utf8('{}')],
  [';', utf8('{}')],
  ['application/json, text/plain', utf8('{}')],
  [null, utf8('{"stamps":1}')],
];

function bodyOf(schema: Schema | undefined, resolve: Resolve): fc.Arbitrary<Body> {
  const bytes = fc
    .constantFrom(...BYTES)
    .map(([type, bytes]): Body => ({ kind: 'bytes', bytes: bytes, type }));
  const none = fc.constant<Body>({ kind: 'none' });
  const json = (values: fc.Arbitrary<unknown>, isValid = false) =>
    fc.record({
      kind: fc.constant('json' as const),
      value: values,
      isValid: fc.constant(isValid),
      chunked: RARE,
    });
  if (schema === undefined) {
    return fc.oneof(
      { weight: 12, arbitrary: none },
      { weight: 1, arbitrary: json(anything) },
      { weight: 1, arbitrary: bytes },
    );
  }
  const valid = validValue('', schema, resolve);
  return fc.oneof(
    { weight: 70, arbitrary: json(valid, true) },
    { weight: 35, arbitrary: json(invalidObject(schema, resolve)) },
    { weight: 5, arbitrary: json(anything) },
    { weight: 5, arbitrary: bytes },
    { weight: 1, arbitrary: none },
  );
}
