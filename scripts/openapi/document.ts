import type { INestApplication } from '@nestjs/common';
import * as swagger from '@nestjs/swagger';
import type { OpenApiDocument } from '#docs/openapi-document.js';
import { HEADERS, PARAMETERS } from '#docs/openapi-headers.js';
import { applySwaggerDecorators } from '#http/documentation.js';
import { endpoints, publishedEvents, tags } from '#http/endpoint.js';
import { ErrorBody, ProblemBody } from '#docs/error.dto.js';
import {
  createOperation,
  createRefusalResponses,
  createWebhook,
  type FoundOperation,
} from './operation.js';
import { listInnerDtos, collectReachable, Schemas } from './schemas.js';

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
    { autoTagControllers: false, extraModels: [ErrorBody, ProblemBody, ...listInnerDtos()] },
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
  const responses = createRefusalResponses();
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
    tags: [...tags.values()]
      .sort((one, other) => one.order - other.order)
      .map(({ name, description }) => ({ name, description })),
    paths,
    webhooks,
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'An API token of a user' },
      },
      schemas: collectReachable(schemas.components, paths, webhooks, responses),
      responses,
      headers: HEADERS,
      parameters: PARAMETERS,
    },
  };
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
