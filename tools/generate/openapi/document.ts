import type { INestApplication } from '@nestjs/common';
import * as swagger from '@nestjs/swagger';
import type { OpenApiDocument } from '#web/docs/openapi-document.js';
import { HEADERS, PARAMETERS } from '#web/docs/openapi-headers.js';
import { applySwaggerDecorators } from '#platform/http/documentation.js';
import { endpoints, publishedEvents, tags, type Tag } from '#platform/http/endpoint.js';
import { isAdminRoute } from '#platform/http/path.js';
import { ErrorBody } from '#web/docs/error.dto.js';
import {
  createOperation,
  createFailureResponses,
  createWebhook,
  WEBHOOK_TAG,
  type FoundOperation,
} from './operation.js';
import { openRequestSchema, openResponseSchema } from './open-shapes.js';
import { listInnerDtos, collectReachable, Schemas, type JsonSchema } from './schemas.js';

const ERRORS = `Every error is JSON with \`error\`, \`code\`, usually a
\`resolution\`, and on 422 \`errors\` by field. Ids are integers, times are ISO 8601 in UTC. Ignore
response fields that you do not know: new ones may be added.`;

const DESCRIPTION = `Loyalty stamp cards for local businesses. Every request except the status needs
\`Authorization: Bearer <API_TOKEN>\`. ${ERRORS}

The examples take the service's address and a token from two shell variables:
\`export INKPAD_URL=https://… INKPAD_TOKEN=ink_…\``;

const ADMIN_DESCRIPTION = `Provisions the stores, users and API tokens of an Inkpad service. Every request needs
\`Authorization: Bearer <ADMIN_TOKEN>\`: a token of the admin API, which only the command line creates, and without which
there is no admin API. ${ERRORS}

The examples take the service's address and a token from two shell variables:
\`export INKPAD_URL=https://… INKPAD_ADMIN_TOKEN=inkadm_…\``;

type Mapped = Record<string, Record<string, Record<string, unknown>>>;

/**
 * Creates the documents of both APIs from the controllers and DTOs, so that they always match the code. Objects are
 * open, because fields may be added to responses within v1.
 * @throws Error that names an operation without a declaration or an example
 */
export function createOpenApiDocuments(
  app: INestApplication,
  publicUrl: string,
): { api: OpenApiDocument; admin: OpenApiDocument } {
  applySwaggerDecorators(swagger);
  const document = swagger.SwaggerModule.createDocument(
    app,
    new swagger.DocumentBuilder().setOpenAPIVersion('3.1.0').build(),
    { autoTagControllers: false, extraModels: [ErrorBody, ...listInnerDtos()] },
  );
  // Pages and the requests of phones and wallets are not described.
  const described = Object.entries(document.paths).filter(([path]) => path.startsWith('/api/'));
  const createPaths = (schemas: Schemas, isIncluded: (path: string) => boolean) =>
    mapValues(
      Object.fromEntries(described.filter(([path]) => isIncluded(path))),
      (operations, path) =>
        mapValues(operations as Record<string, FoundOperation>, (operation, method) => {
          const spec = endpoints.get(operation.operationId ?? '');
          if (!spec) throw new Error(`${method} ${path} has no @Endpoint`);
          return addErrorContext(`${method} ${path}`, () => {
            if (!tags.has(spec.tag)) throw new Error(`no controller declares the tag ${spec.tag}`);
            return createOperation(spec, { method, path }, operation, schemas);
          });
        }),
    );
  const schemas = new Schemas(document.components?.schemas ?? {});
  const paths = createPaths(schemas, (path) => !isAdminRoute(path));
  const webhooks = mapValues(Object.fromEntries(publishedEvents), (spec, type) =>
    addErrorContext(type, () => createWebhook(spec, schemas)),
  );
  const info = { title: 'Inkpad', description: DESCRIPTION };
  const adminSchemas = new Schemas(document.components?.schemas ?? {});
  const adminPaths = createPaths(adminSchemas, isAdminRoute);
  return {
    api: assemble(info, publicUrl, schemas, {
      token: 'An API token of a user',
      paths,
      webhooks,
    }),
    admin: assemble(
      { title: 'Inkpad, admin API', description: ADMIN_DESCRIPTION },
      publicUrl,
      adminSchemas,
      { token: 'A token of the admin API', paths: adminPaths },
    ),
  };
}

function assemble(
  info: { title: string; description: string },
  publicUrl: string,
  schemas: Schemas,
  { token, paths, webhooks }: { token: string; paths: Mapped; webhooks?: Record<string, unknown> },
): OpenApiDocument {
  const responses = createFailureResponses();
  return {
    openapi: '3.1.0',
    info: {
      title: info.title,
      version: 'v1',
      description: info.description,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: publicUrl }],
    security: [{ token: [] }],
    tags: [...listTags(paths), ...(webhooks ? [WEBHOOK_TAG] : [])].map(({ name, description }) => ({
      name,
      description,
    })),
    paths: mapValues(paths, (methods) => mapValues(methods, openOperation)),
    ...(webhooks && { webhooks }),
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: token } },
      schemas: openComponents(schemas.components, paths, [webhooks ?? null, responses]),
      responses,
      headers: pickHeaders(paths, responses),
      parameters: PARAMETERS,
    },
  };
}

/** Picks the headers that operations refer to: no operation of the admin API has a dry run. */
function pickHeaders(paths: Mapped, responses: unknown): Record<string, unknown> {
  const text = JSON.stringify([paths, responses]);
  return Object.fromEntries(
    Object.entries(HEADERS).filter(([name]) => text.includes(`#/components/headers/${name}"`)),
  );
}

/** Lists the tags of operations in their order. */
function listTags(paths: Mapped): Tag[] {
  const used = new Set(
    Object.values(paths).flatMap((methods) =>
      Object.values(methods).flatMap((operation) => operation['tags'] as string[]),
    ),
  );
  return [...tags.values()]
    .filter(({ name }) => used.has(name))
    .sort((one, other) => one.order - other.order);
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
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
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
