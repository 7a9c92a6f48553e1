import type { INestApplication } from '@nestjs/common';
import * as swagger from '@nestjs/swagger';
import type { OpenApiDocument } from '#docs/openapi-document.js';
import { HEADERS, PARAMETERS } from '#docs/openapi-headers.js';
import { applySwaggerDecorators } from '#http/documentation.js';
import { endpoints, publishedEvents, tags } from '#http/endpoint.js';
import { ErrorBody } from '#docs/error.dto.js';
import {
  createOperation,
  createFailureResponses,
  createWebhook,
  WEBHOOK_TAG,
  type FoundOperation,
} from './operation.js';
import { openRequestSchema, openResponseSchema } from './open-shapes.js';
import { listInnerDtos, collectReachable, Schemas, type JsonSchema } from './schemas.js';

const DESCRIPTION = `Loyalty stamp cards for local businesses. Every request except the status needs
\`Authorization: Bearer <API_TOKEN>\`. Every error is JSON with \`error\`, \`code\`, usually a
\`resolution\`, and on 422 \`errors\` by field. Ids are integers, times are ISO 8601 in UTC. Ignore
response fields that you do not know: new ones may be added.

The examples take the service's address and a token from two shell variables:
\`export INKPAD_URL=https://… INKPAD_TOKEN=ink_…\``;

/**
 * Creates the document from the controllers and DTOs, so that it always matches the code. Objects are open, because
 * fields may be added to responses within v1.
 * @throws Error that names an operation without a declaration or an example
 */
export function createOpenApiDocument(app: INestApplication, publicUrl: string): OpenApiDocument {
  applySwaggerDecorators(swagger);
  const document = swagger.SwaggerModule.createDocument(
    app,
    new swagger.DocumentBuilder().setOpenAPIVersion('3.1.0').build(),
    { autoTagControllers: false, extraModels: [ErrorBody, ...listInnerDtos()] },
  );
  const schemas = new Schemas(document.components?.schemas ?? {});
  // Pages and the requests of phones and wallets are not described.
  const described = Object.entries(document.paths).filter(([path]) => path.startsWith('/api/'));
  const paths = mapValues(Object.fromEntries(described), (operations, path) =>
    mapValues(operations as Record<string, FoundOperation>, (operation, method) => {
      const spec = endpoints.get(operation.operationId ?? '');
      if (!spec) throw new Error(`${method} ${path} has no @Endpoint`);
      return addErrorContext(`${method} ${path}`, () => {
        if (!tags.has(spec.tag)) throw new Error(`no controller declares the tag ${spec.tag}`);
        return createOperation(spec, { method, path }, operation, schemas);
      });
    }),
  );
  const webhooks = mapValues(Object.fromEntries(publishedEvents), (spec, type) =>
    addErrorContext(type, () => createWebhook(spec, schemas)),
  );
  const responses = createFailureResponses();
  return {
    openapi: '3.1.0',
    info: {
      title: 'Inkpad',
      version: 'v1',
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: publicUrl }],
    security: [{ token: [] }],
    tags: [...[...tags.values()].sort((one, other) => one.order - other.order), WEBHOOK_TAG].map(
      ({ name, description }) => ({ name, description }),
    ),
    paths: mapValues(paths, (one) => mapValues(one, openOperation)),
    webhooks,
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'An API token of a user' },
      },
      schemas: openComponents(schemas.components, paths, [webhooks, responses]),
      responses,
      headers: HEADERS,
      parameters: PARAMETERS,
    },
  };
}

/** Opens the parts of an operation that are no components. */
function openOperation(operation: Record<string, unknown>): Record<string, unknown> {
  const { parameters, requestBody, responses } = operation;
  return {
    ...operation,
    parameters: openRequestSchema(parameters),
    ...(requestBody !== undefined && { requestBody: openRequestSchema(requestBody) }),
    responses: openResponseSchema(responses),
  };
}

/** Opens the components that operations refer to; those of requests and of responses are never the same. */
function openComponents(
  components: Record<string, JsonSchema>,
  paths: Record<string, Record<string, Record<string, unknown>>>,
  received: unknown,
): Record<string, JsonSchema> {
  const operations = Object.values(paths).flatMap((one) => Object.values(one));
  const requests = collectReachable(
    components,
    operations.map(({ parameters, requestBody = null }) => [parameters, requestBody]),
  );
  const results = collectReachable(
    components,
    operations.map(({ responses, callbacks = null }) => [responses, callbacks]),
    received,
  );
  return sortKeys({
    ...mapValues(requests, (schema) => openRequestSchema(schema) as JsonSchema),
    ...mapValues(results, (schema) => openResponseSchema(schema) as JsonSchema),
  });
}

function sortKeys<T>(record: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function mapValues<T, R>(
  record: Record<string, T>,
  map: (value: T, key: string) => R,
): Record<string, R> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value, key)]));
}

function addErrorContext<R>(what: string, make: () => R): R {
  try {
    return make();
  } catch (error) {
    throw new Error(`${what}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}
