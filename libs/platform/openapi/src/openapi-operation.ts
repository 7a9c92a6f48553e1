import { STATUS_CODES } from 'node:http';
import type { EndpointSpec, PublishedWebhook } from '#http/endpoint.js';
import { curlSample, typescriptSample } from './code-samples.js';
import type { ErrorCode } from '#http/error.dto.js';
import { published, Schemas, type JsonSchema } from './schemas.js';

type OpenApiObject = Record<string, unknown>;

type Content = Record<string, { schema: JsonSchema }>;

type Parameter = {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: JsonSchema;
  example?: unknown;
};

/** What of an operation as @nestjs/swagger made it is read here. */
export type FoundOperation = {
  operationId?: string;
  parameters?: Parameter[];
  requestBody?: { content: Content };
  responses?: Record<string, { description?: string; content?: Content }>;
};

type Refusal = {
  name: string;
  code: ErrorCode;
  description: string;
  error: string;
  errors?: Record<string, string[]>;
  resolution?: string;
  headers?: string[];
};

const REFUSALS: Record<number, Refusal> = {
  400: {
    name: 'MalformedJson',
    code: 'malformed_json',
    description: 'The body is not valid JSON',
    error: 'The body is not valid JSON',
    resolution: 'Send one JSON object in UTF-8.',
  },
  401: {
    name: 'Unauthorized',
    code: 'unauthorized',
    description: 'The token is missing or invalid',
    error: 'The API token is missing or invalid',
    resolution: 'Send the header Authorization: Bearer <API_TOKEN> with a token that is in force.',
  },
  404: {
    name: 'NotFound',
    code: 'not_found',
    description: 'The record does not exist, or the token does not reach its store',
    error: 'Card not found',
  },
  409: {
    name: 'InProgress',
    code: 'idempotency_in_progress',
    description: 'The first request with this Idempotency-Key is still running',
    error: 'A request with this Idempotency-Key is still running',
    resolution: 'Wait as long as Retry-After says and send the request again.',
    headers: ['Retry-After'],
  },
  410: {
    name: 'Retired',
    code: 'version_sunset',
    description: 'This version of the API has been retired',
    error: 'This version of the API has been retired',
    resolution: 'Move to a version that is supported.',
  },
  413: {
    name: 'TooLarge',
    code: 'payload_too_large',
    description: 'The body is larger than 1 MiB',
    error: 'The body is larger than 1 MiB',
    resolution: 'Send less in one request.',
  },
  415: {
    name: 'NotJson',
    code: 'unsupported_media_type',
    description: 'The body is not JSON',
    error: 'The body must be JSON',
    resolution: 'Send the header Content-Type: application/json.',
  },
  422: {
    name: 'Rejected',
    code: 'validation_failed',
    description:
      'The request was understood and refused: errors has the messages by field, code names the rule. idempotency_key_reused: the key came before with another body',
    error: 'name must not be blank',
    errors: { name: ['must not be blank'] },
    headers: ['Idempotent-Replayed'],
  },
  429: {
    name: 'TooManyRequests',
    code: 'rate_limited',
    description: 'Too many requests; wait as long as Retry-After says',
    error: 'Too many requests',
    resolution: 'Wait 12 seconds and send the request again.',
    headers: ['Retry-After'],
  },
  500: {
    name: 'Failed',
    code: 'internal',
    description: 'A fault of the service; nothing was written',
    error: 'Something went wrong on our side',
  },
  503: {
    name: 'Unavailable',
    code: 'unavailable',
    description: 'A part that the request needs is away; nothing was written',
    error: 'The database cannot be reached',
    resolution: 'Nothing was written. Send the request again in a moment.',
    headers: ['Retry-After'],
  },
};

const header = (description: string, schema: JsonSchema, required = false) => ({
  description,
  required,
  schema,
});

export const HEADERS = {
  'X-Request-Id': header(
    'The id of this request, yours if you sent a fit one',
    { type: 'string', examples: ['0199c0de-7b3a-7c2f-9d51-0a4b6c8d9e01'] },
    true,
  ),
  'RateLimit-Limit': header(
    'Requests allowed in the current window',
    { type: 'integer', examples: [300] },
    true,
  ),
  'RateLimit-Remaining': header(
    'Requests still allowed in the window',
    { type: 'integer', examples: [299] },
    true,
  ),
  'RateLimit-Reset': header(
    'Seconds until the window resets',
    { type: 'integer', examples: [60] },
    true,
  ),
  'RateLimit-Policy': header(
    'quota;w=window-seconds',
    { type: 'string', examples: ['300;w=60'] },
    true,
  ),
  'Retry-After': header('Seconds to wait', { type: 'integer', minimum: 0, examples: [12] }, true),
  'Idempotent-Replayed': header('true: the answer that was kept under this Idempotency-Key', {
    type: 'string',
    enum: ['true'],
  }),
  'X-Dry-Run': header('true: with dry_run, nothing was stored', { type: 'string', enum: ['true'] }),
  Link: header(
    'rel="next": the next page, while there is one (RFC 8288); rel="deprecation": the versioning policy, while this version is being retired',
    { type: 'string', examples: ['</api/v1/accounts/1/cards?limit=2&cursor=Mg>; rel="next"'] },
  ),
  Deprecation: header(
    'While this version is being retired: since when, in seconds since 1970 (RFC 9745)',
    { type: 'string', pattern: '^@\\d+$', examples: ['@1798761600'] },
  ),
  Sunset: header('While this version is being retired: when it stops answering (RFC 8594)', {
    type: 'string',
    examples: ['Sat, 01 Jan 2028 00:00:00 GMT'],
  }),
};

const EVERYWHERE = [
  'X-Request-Id',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'RateLimit-Policy',
  'Deprecation',
  'Sunset',
  'Link',
];

export const PARAMETERS = {
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      'Makes it safe to send the request again: within 24 hours the same key with the same body gets the first answer and changes nothing. 1 to 255 printable ASCII characters, chosen anew for each thing to be done.',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x20-\\x7e]+$' },
  },
  RequestId: {
    name: 'X-Request-Id',
    in: 'header',
    required: false,
    description: 'Comes back in the answer and stands in the history; anything unfit is replaced.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
  },
};

/** The refusals that operations share, by name. */
export function refusalResponses(): Record<string, OpenApiObject> {
  return Object.fromEntries(
    Object.entries(REFUSALS).map(([status, refusal]) => {
      const { name, code, description, error, errors, resolution, headers = [] } = refusal;
      const example = {
        error,
        code,
        ...(errors && { errors }),
        ...(resolution !== undefined && { resolution }),
        documentation_url: 'https://inkpad.example/docs',
        request_id: '0199c0de-7b3a-7c2f-9d51-0a4b6c8d9e01',
      };
      const problem = {
        ...example,
        type: `https://inkpad.example/docs/errors#${code}`,
        title: STATUS_CODES[status],
        status: Number(status),
        detail: error,
        instance: '/api/v1/accounts/1/cards/1',
      };
      return [
        name,
        {
          description,
          headers: headerRefs([...EVERYWHERE, ...headers]),
          content: {
            'application/json': { schema: Schemas.ref('Error'), example },
            'application/problem+json': {
              schema: Schemas.ref('Problem'),
              example: problem,
            },
          },
        },
      ];
    }),
  );
}

/** An operation as @nestjs/swagger describes it, and what it cannot say: samples, headers, refusals. */
export function operationObject(
  spec: EndpointSpec,
  route: { method: string; path: string },
  found: FoundOperation,
  schemas: Schemas,
): OpenApiObject {
  const method = route.method.toUpperCase();
  const writes = method !== 'GET';
  const parameters = (found.parameters ?? []).map(parameterObject);
  const query = parameters.filter((one) => one.in === 'query');
  const body = bodyOf(found, schemas);
  const example = body && schemas.example(body, 'input');
  return {
    operationId: spec.id,
    tags: [spec.tag],
    summary: spec.summary,
    description: describe(spec, { ...route, method }, query, example),
    ...(spec.open && { security: [] }),
    parameters: [
      ...pathParameters(spec, parameters),
      ...query,
      ...(writes ? [parameterRef('IdempotencyKey')] : []),
      parameterRef('RequestId'),
    ],
    ...(body && {
      requestBody: {
        required: Array.isArray(schemas.resolve(body)['required']),
        content: { 'application/json': { schema: body, example } },
      },
    }),
    responses: responsesOf(spec, found, schemas, {
      writes,
      isDryRun: query.some(({ name }) => name === 'dry_run'),
    }),
  };
}

function responsesOf(
  spec: EndpointSpec,
  found: FoundOperation,
  schemas: Schemas,
  { writes, isDryRun }: { writes: boolean; isDryRun: boolean },
): OpenApiObject {
  const done = found.responses?.[spec.status];
  const answer = done?.content?.['application/json']?.schema;
  const isList = !writes && Array.isArray(spec.answer);
  const statuses = [
    ...(spec.open ? [] : [401]),
    ...(spec.errors ?? []),
    ...(writes ? [400, 409, 413, 415, 422] : []),
    ...(isList ? [422] : []),
    410,
    429,
    500,
    503,
  ];
  const headers = [
    ...EVERYWHERE,
    ...(writes ? ['Idempotent-Replayed'] : []),
    ...(isDryRun ? ['X-Dry-Run'] : []),
  ];
  return Object.fromEntries([
    [
      spec.status,
      {
        description: done?.description,
        headers: headerRefs(headers),
        ...(answer && {
          content: {
            'application/json': { schema: answer, example: schemas.example(answer, 'output') },
          },
        }),
      },
    ],
    ...statuses.map((status) => [
      status,
      { $ref: `#/components/responses/${REFUSALS[status]?.name}` },
    ]),
  ]) as OpenApiObject;
}

/** In the order of the path. */
function pathParameters({ path = [] }: EndpointSpec, parameters: Parameter[]): Parameter[] {
  return path.flatMap(
    (name) => parameters.find((one) => one.in === 'path' && one.name === name) ?? [],
  );
}

function describe(
  spec: EndpointSpec,
  { method, path }: { method: string; path: string },
  query: Parameter[],
  body: unknown,
): string {
  const ids = Object.fromEntries((spec.path ?? []).map((name) => [name, 1]));
  const sample = {
    id: spec.id,
    method,
    url: path.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(ids[name])),
    path: ids,
    query: Object.fromEntries(
      query.flatMap(({ name, example }) => (example === undefined ? [] : [[name, example]])),
    ) as Record<string, unknown>,
    body,
    open: spec.open === true,
    answers: spec.answer !== undefined,
  };
  return [
    ...(spec.description === undefined ? [] : [spec.description]),
    SAMPLES_BEGIN,
    '```sh',
    curlSample(sample),
    '```',
    '',
    '```typescript',
    typescriptSample(sample),
    '```',
  ].join('\n');
}

/** Between what an operation does and how it is called. */
const SAMPLES_BEGIN = '\n**Example**\n';

/** The document for programs that show descriptions to people elsewhere, in types for example. */
export function withoutSamples(description: string): string {
  return description.split(SAMPLES_BEGIN, 1)[0]?.trim() ?? '';
}

export function webhookObject(
  { type, summary, ...shapes }: PublishedWebhook,
  schemas: Schemas,
): OpenApiObject {
  const envelope = Schemas.refTo(shapes.envelope);
  const data = Schemas.refTo(shapes.data);
  const example = schemas.example(envelope, 'output') as { data: unknown };
  const wire = (name: string, description: string, value: unknown) => ({
    name,
    in: 'header',
    required: true,
    description,
    schema: { type: 'string' },
    example: value,
  });
  return {
    post: {
      operationId: `on_${type.replaceAll('.', '_')}`,
      tags: ['Webhook subscriptions'],
      summary,
      security: [],
      parameters: [
        wire(
          'webhook-id',
          'The event’s id, the same at every attempt',
          'evt_01JABCDEFGHJKMNPQRSTVWXYZ0',
        ),
        wire(
          'webhook-timestamp',
          'When this attempt was made, in seconds since 1970',
          '1772366400',
        ),
        wire(
          'webhook-signature',
          'Standard Webhooks v1, made with the subscription’s secret; several stand apart by a space',
          'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
        ),
        wire('Service-Event', 'The type of the event', type),
      ],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: { anyOf: [envelope, data] },
            examples: {
              envelope: { summary: 'payload_format envelope', value: example },
              flat: { summary: 'payload_format flat', value: example.data },
            },
          },
        },
      },
      responses: {
        '2XX': { description: 'Received, within 10 seconds' },
        '410': { description: 'Nobody is here any more: the subscription is deleted' },
        default: { description: 'Not received: it is sent again, up to 10 attempts in four hours' },
      },
    },
  };
}

function bodyOf({ requestBody }: FoundOperation, schemas: Schemas): JsonSchema | undefined {
  const ref = requestBody?.content['application/json']?.schema['$ref'];
  return typeof ref === 'string' ? schemas.body(ref.split('/').at(-1) ?? '') : undefined;
}

/** A field of a query says the same as one of a body; where it stands belongs to the parameter. */
function parameterObject(given: Parameter): Parameter {
  const { name, in: place, required, description, example, schema } = given;
  const { examples, ...rest } = published(schema);
  const shown = example ?? (Array.isArray(examples) ? (examples[0] as unknown) : undefined);
  return {
    name,
    in: place,
    required: required ?? false,
    ...(description !== undefined && { description }),
    schema: rest,
    ...(shown !== undefined && { example: shown }),
  };
}

function headerRefs(names: string[]): OpenApiObject {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function parameterRef(name: keyof typeof PARAMETERS): OpenApiObject {
  return { $ref: `#/components/parameters/${name}` };
}
