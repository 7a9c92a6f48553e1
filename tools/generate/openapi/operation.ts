import {
  publishedEvents,
  type EndpointSpec,
  type PublishedEvent,
} from '#platform/http/endpoint.js';
import { ERROR_PAGE } from '#platform/http/error-response.js';
import { isAdminRoute } from '#platform/http/path.js';
import { findRequiredRoles } from '#identity/roles.js';
import { renderCurlSample, renderPythonSample, renderTypescriptSample } from './code-samples.js';
import { INPUT_HEADERS, COMMON_HEADERS, type PARAMETERS } from '#web/docs/openapi-headers.js';
import { getDocumentedCode, ERROR_RESPONSES } from './error-responses.js';
import { toPublished, Schemas, type JsonSchema } from './schemas.js';

/** The tag of the webhooks. With the tag of operations, generators would write one file over the other. */
export const WEBHOOK_TAG = {
  name: 'Webhook events',
  description: 'Requests that Inkpad sends to the target_url of a subscription.',
};

type OpenApiObject = Record<string, unknown>;

const OTHER_FAILURE = 'OtherFailure';
const RECEIVER_RESPONSES = {
  '2XX': { description: 'Received, within 10 seconds' },
  '410': { description: 'The receiver is gone: the subscription is deleted' },
  default: { description: 'Not received: it is retried, up to 10 attempts in four hours' },
};
type Content = Record<string, { schema: JsonSchema }>;

type Parameter = {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: JsonSchema;
  example?: unknown;
};

/** The parts that are read of an operation made by @nestjs/swagger. */
export type FoundOperation = {
  operationId?: string;
  parameters?: Parameter[];
  requestBody?: { content: Content };
  responses?: Record<string, { description?: string; content?: Content }>;
};

type Route = { method: string; path: string };

/** The failures that operations name; all others are their `default`. */
const NAMED_FAILURES = new Set(['403', '404', '409', '422']);

/** Creates the failures that operations share, by name. */
export function createFailureResponses(): Record<string, OpenApiObject> {
  const named = Object.entries(ERROR_RESPONSES).filter(([status]) => NAMED_FAILURES.has(status));
  const others = Object.entries(ERROR_RESPONSES).filter(([status]) => !NAMED_FAILURES.has(status));
  const { 429: limited } = ERROR_RESPONSES;
  if (!limited) throw new Error('no code has the status 429');
  const list = others.map(([status, { description }]) => `${status}: ${description}`).join('\n');
  const rest = { ...limited, name: OTHER_FAILURE, description: `Any other failure.\n\n${list}` };
  return Object.fromEntries(
    [...named.map(([, errorResponse]) => errorResponse), rest].map((errorResponse) => {
      const { name, code, description, error, errors, resolution } = errorResponse;
      const example = {
        error,
        code,
        ...(errors && { errors }),
        ...(resolution !== undefined && { resolution }),
        documentation_url: `https://inkpad.example${ERROR_PAGE}#${code}`,
        request_id: '0199c0de-7b3a-7c2f-9d51-0a4b6c8d9e01',
      };
      return [
        name,
        {
          description,
          headers: createHeaderRefs([
            ...COMMON_HEADERS,
            ...(name === OTHER_FAILURE ? ['Retry-After'] : INPUT_HEADERS),
          ]),
          content: { 'application/json': { schema: Schemas.ref('ErrorResponse'), example } },
        },
      ];
    }),
  );
}

/**
 * Creates an operation from what @nestjs/swagger describes, with what it cannot express: samples, headers, errors.
 */
export function createOperation(
  spec: EndpointSpec,
  route: Route,
  operation: FoundOperation,
  schemas: Schemas,
): OpenApiObject {
  const method = route.method.toUpperCase();
  const writes = method !== 'GET';
  const parameters = (operation.parameters ?? []).map((item) => createParameter(item, route.path));
  const query = parameters.filter((parameter) => parameter.in === 'query');
  const body = findBodySchema(operation, schemas);
  const example = body && schemas.example(body, 'input');
  return {
    operationId: spec.id,
    tags: [spec.tag],
    summary: spec.summary,
    description: describe(spec, route),
    ...(spec.isPublic && { security: [] }),
    parameters: [
      ...sortPathParameters(spec, parameters),
      ...query,
      ...(writes ? [createParameterRef('IdempotencyKey')] : []),
      createParameterRef('RequestId'),
      createParameterRef('Prefer'),
    ],
    ...(body && {
      requestBody: {
        required: Array.isArray(schemas.resolve(body)['required']),
        content: { 'application/json': { schema: body, example } },
      },
    }),
    ...createBinaryBody(spec.picture ?? spec.file),
    responses: createResponses(spec, operation, schemas, {
      writes,
      isForSome: findRoles(spec, route) !== null,
      isDryRun: query.some(({ name }) => name === 'dry_run'),
    }),
    ...(spec.codes && { 'x-error-codes': spec.codes.map(getDocumentedCode) }),
    ...(spec.callback !== undefined && { callbacks: createCallback(spec.callback, schemas) }),
    'x-codeSamples': createSamples(spec, { ...route, method }, parameters, example),
  };
}

/** Creates the body of an operation that takes a picture or a file. Generators know no media type of these. */
function createBinaryBody(description: string | undefined): OpenApiObject {
  if (description === undefined) return {};
  const content = { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } };
  return { requestBody: { required: true, description, content } };
}

function createResponses(
  spec: EndpointSpec,
  operation: FoundOperation,
  schemas: Schemas,
  { writes, isForSome, isDryRun }: Record<'writes' | 'isForSome' | 'isDryRun', boolean>,
): OpenApiObject {
  const success = operation.responses?.[spec.status];
  const schema = success?.content?.['application/json']?.schema;
  const statuses = [
    // To a read-only token whatever writes.
    ...(isForSome || writes ? [403] : []),
    ...(spec.errors ?? []),
    // With a key that is in use.
    ...(writes ? [409] : []),
    // With Prefer: handling=strict, whatever the operation.
    422,
  ].map(String);
  const headers = [
    ...COMMON_HEADERS,
    ...INPUT_HEADERS,
    ...(writes ? ['Idempotent-Replayed'] : []),
    ...(isDryRun ? ['X-Dry-Run'] : []),
  ];
  const createSuccess = (description: string | undefined) => ({
    description,
    headers: createHeaderRefs(headers),
    ...(schema && {
      content: {
        'application/json': { schema, example: schemas.example(schema, 'output') },
        ...(spec.alternative !== undefined && {
          [spec.alternative]: { schema: { type: 'string' } },
        }),
      },
    }),
    ...(spec.download && {
      content: Object.fromEntries(
        Object.entries(spec.download).map(([type, example]) => [
          type,
          { schema: { type: 'string' }, example },
        ]),
      ),
    }),
  });
  const { otherStatus } = spec;
  return Object.fromEntries([
    [spec.status, createSuccess(success?.description)],
    ...(otherStatus ? [[otherStatus.status, createSuccess(otherStatus.description)]] : []),
    ...statuses
      .filter((status) => NAMED_FAILURES.has(status))
      .map((status) => [status, createResponseRef(ERROR_RESPONSES[Number(status)]?.name)]),
    ['default', createResponseRef(OTHER_FAILURE)],
  ]) as OpenApiObject;
}

/** Sorts the parameters in the order of the path. @throws Error when @nestjs/swagger lacks one that the operation declares */
function sortPathParameters({ path = [] }: EndpointSpec, parameters: Parameter[]): Parameter[] {
  return path.map((part) => {
    const name = typeof part === 'string' ? part : part.name;
    const parameter = parameters.find((each) => each.in === 'path' && each.name === name);
    if (!parameter) throw new Error(`the path parameter ${name} is not described`);
    return parameter;
  });
}

/** Finds the roles that an operation is for, null: all. Tokens of the admin API have none. */
function findRoles({ id }: EndpointSpec, { path }: Route): string[] | null {
  return isAdminRoute(path) ? null : findRequiredRoles(id);
}

function describe(spec: EndpointSpec, route: Route): string {
  const roles = findRoles(spec, route);
  return [
    ...(spec.description === undefined ? [] : [spec.description]),
    ...(roles ? [`For users with the role ${roles.join(' or ')}.`] : []),
  ].join('\n');
}

/** Creates the samples in each language, as an extension that renderers know. */
function createSamples(
  spec: EndpointSpec,
  { method, path }: Route,
  parameters: Parameter[],
  body: unknown,
): OpenApiObject[] {
  const ids = collectExamples(sortPathParameters(spec, parameters));
  const sample = {
    id: spec.id,
    method,
    url: path.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(ids[name])),
    path: ids,
    query: collectExamples(parameters.filter((parameter) => parameter.in === 'query')),
    body,
    picture: spec.picture !== undefined,
    file: spec.file !== undefined,
    open: spec.isPublic === true,
    hasResponse: spec.response !== undefined || spec.download !== undefined,
  };
  // The clients have none of its operations.
  if (isAdminRoute(path)) {
    const source = renderCurlSample(sample, 'INKPAD_ADMIN_TOKEN');
    return [{ lang: 'shell', label: 'curl', source }];
  }
  return [
    { lang: 'shell', label: 'curl', source: renderCurlSample(sample) },
    { lang: 'typescript', label: 'TypeScript', source: renderTypescriptSample(sample) },
    { lang: 'python', label: 'Python', source: renderPythonSample(sample) },
  ];
}

/** Collects examples by name, of the parameters that have one. */
function collectExamples(parameters: Parameter[]): Record<string, unknown> {
  const examples = parameters.filter(({ example }) => example !== undefined);
  return Object.fromEntries(examples.map(({ name, example }) => [name, example]));
}

export function createWebhook(
  { type, summary, details, ...shapes }: PublishedEvent,
  schemas: Schemas,
): OpenApiObject {
  const envelope = Schemas.refTo(shapes.envelope);
  const data = Schemas.refTo(shapes.data);
  const example = schemas.example(envelope, 'output') as { data: unknown };
  return {
    post: {
      operationId: `on${toPascalCase(type)}`,
      tags: [WEBHOOK_TAG.name],
      summary,
      description: `${details ? `${details} ` : ''}Sent to the target_url of each subscription to this event. /docs/webhooks says how to verify and respond to it.`,
      security: [],
      parameters: createWebhookHeaders(type),
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: schemas.add(getWebhookName(type), {
              description: 'The envelope, or with payload_format flat its data alone.',
              anyOf: [envelope, data],
            }),
            examples: {
              envelope: { summary: 'payload_format envelope', value: example },
              flat: { summary: 'payload_format flat', value: example.data },
            },
          },
        },
      },
      responses: RECEIVER_RESPONSES,
    },
  };
}

function createWebhookHeaders(type: string): OpenApiObject[] {
  const header = (name: string, description: string, example: string) => ({
    name,
    in: 'header',
    required: true,
    description,
    schema: { type: 'string' },
    example,
  });
  return [
    header(
      'webhook-id',
      'The event’s id, the same in every attempt',
      'evt_01JABCDEFGHJKMNPQRSTVWXYZ0',
    ),
    header('webhook-timestamp', 'When this attempt was made, in seconds since 1970', '1772366400'),
    header(
      'webhook-signature',
      'Standard Webhooks v1, made with the subscription’s secret; several are separated by spaces',
      'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
    ),
    header('Service-Event', 'The type of the event', type),
  ];
}

function findBodySchema({ requestBody }: FoundOperation, schemas: Schemas): JsonSchema | undefined {
  const ref = requestBody?.content['application/json']?.schema['$ref'];
  return typeof ref === 'string' ? schemas.body(ref.split('/').at(-1) ?? '') : undefined;
}

/**
 * Creates a parameter of a query field, which is declared like one of a body: some keywords belong to the parameter
 * instead.
 */
function createParameter(parameter: Parameter, path: string): Parameter {
  const { name, in: place, required, example, schema } = parameter;
  const description =
    parameter.description ?? (place === 'path' ? describeId(name, path) : undefined);
  const { examples, ...rest } = toPublished(schema);
  const exampleValue = example ?? (Array.isArray(examples) ? (examples[0] as unknown) : undefined);
  return {
    name,
    in: place,
    required: required ?? false,
    // A blank value is no value, as in a body; only here the schema cannot say so.
    ...(place === 'query' && rest['default'] === null && { allowEmptyValue: true }),
    ...(description !== undefined && { description }),
    schema: rest,
    ...(exampleValue !== undefined && { example: exampleValue }),
  };
}

/** Repeats the webhooks as a callback: a generator that leaves out what no operation refers to needs their schemas. */
function createCallback(target: string, schemas: Schemas): OpenApiObject {
  const [first] = publishedEvents.values();
  if (!first) throw new Error('no event is published');
  const bodies = [...publishedEvents.keys()].map((type) => Schemas.ref(getWebhookName(type)));
  return {
    event: {
      [target]: {
        post: {
          operationId: 'onEvent',
          tags: [WEBHOOK_TAG.name],
          summary: 'Any event',
          description: 'The webhooks of this document are each of these in detail.',
          security: [],
          requestBody: {
            required: true,
            content: {
              'application/json': {
                schema: schemas.add('Webhook', {
                  description: 'The body of any webhook.',
                  anyOf: bodies,
                }),
                example: schemas.example(Schemas.refTo(first.envelope), 'output'),
              },
            },
          },
          responses: RECEIVER_RESPONSES,
        },
      },
    },
  };
}

function getWebhookName(type: string): string {
  return `${toPascalCase(type)}Webhook`;
}

function toPascalCase(type: string): string {
  return type.replaceAll(/(?:^|[._])(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function createResponseRef(name: string | undefined): OpenApiObject {
  return { $ref: `#/components/responses/${name}` };
}

/** Describes an id in a path by the list that it comes from, which is the segment before it. */
function describeId(name: string, path: string): string | undefined {
  const list = new RegExp(`/(\\w+)/\\{${name}\\}`).exec(path)?.[1];
  if (list === undefined) return undefined;
  const parent = list === 'accounts' ? '/api/v1' : '…';
  return `The id of one of the ${list.replaceAll('_', ' ')} that \`GET ${parent}/${list}\` lists.`;
}

function createHeaderRefs(names: string[]): OpenApiObject {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function createParameterRef(name: keyof typeof PARAMETERS): OpenApiObject {
  return { $ref: `#/components/parameters/${name}` };
}
