import { applyDecorators, HttpCode } from '@nestjs/common';
import {
  ApiBody,
  ApiOperation,
  ApiParam,
  ApiQuery,
  ApiResponse,
  ApiSecurity,
  ApiTags,
} from '@nestjs/swagger';
import { z } from 'zod';

type JsonSchema = Record<string, unknown>;

/** Named schemas met so far: they become the components of the OpenAPI document. */
export const components: Record<string, JsonSchema> = {};

type EndpointSpec = {
  /** operationId */
  id: string;
  tag: string;
  summary: string;
  description?: string;
  /** Path ids, each an integer. */
  path?: string[];
  query?: z.ZodObject;
  body?: z.ZodObject;
  /** The name of the object that the body's fields are wrapped in. */
  wrapper?: string;
  /** Fields that stand beside the wrapper. */
  beside?: z.ZodObject;
  status: 200 | 201 | 204;
  answer?: z.ZodType;
  errors?: (404 | 422)[];
  /** No token needed. */
  open?: boolean;
};

const MEANING = {
  400: 'The body is not valid JSON',
  401: 'The token is missing or invalid',
  404: 'The record does not exist, or the token does not reach its store',
  413: 'The body is larger than 1 MiB',
  415: 'The body is not JSON',
  422: 'The request was understood and refused; see errors',
  429: 'Too many requests; wait as long as Retry-After says',
  503: 'A part that the request needs is away; nothing was written',
} as const;

export const errorPayload = z
  .object({
    error: z.string().describe('What went wrong, for people'),
    code: z.string().describe('The same for programs'),
    errors: z
      .record(z.string(), z.array(z.string()))
      .optional()
      .describe('On 422: messages by field; base is a fault of the whole record'),
    resolution: z.string().optional().describe('How to put it right'),
    documentation_url: z.string(),
    request_id: z.string(),
  })
  .meta({ id: 'Error' });

/** One declaration of an operation: what Nest answers with and what the OpenAPI document says. */
export function Endpoint(spec: EndpointSpec): MethodDecorator {
  const errors: (keyof typeof MEANING)[] = [
    ...(spec.open ? [] : ([401] as const)),
    ...(spec.errors ?? []),
    ...(spec.body ? ([400, 413, 415] as const) : []),
    429,
    503,
  ];
  return applyDecorators(
    HttpCode(spec.status),
    ApiTags(spec.tag),
    ApiOperation({
      operationId: spec.id,
      summary: spec.summary,
      ...(spec.description && { description: spec.description }),
    }),
    ...(spec.open ? [] : [ApiSecurity('token')]),
    ...(spec.path ?? []).map((name) =>
      ApiParam({ name, required: true, schema: { type: 'integer', format: 'int64' } }),
    ),
    ...queryParameters(spec.query),
    ...(spec.body ? [ApiBody({ required: true, schema: bodySchema(spec.body, spec) })] : []),
    ApiResponse({
      status: spec.status,
      description: spec.answer ? 'Done' : 'Done, with no body',
      headers: answerHeaders,
      ...(spec.answer && {
        content: { 'application/json': { schema: jsonSchema(spec.answer, 'output') } },
      }),
    }),
    ...errors.map((status) =>
      ApiResponse({
        status,
        description: MEANING[status],
        headers: answerHeaders,
        content: { 'application/json': { schema: jsonSchema(errorPayload, 'output') } },
      }),
    ),
  );
}

const header = (description: string, type: 'integer' | 'string') => ({
  description,
  schema: { type },
});

const answerHeaders = {
  'X-Request-Id': header('The id of this request, yours if you sent a fit one', 'string'),
  'RateLimit-Limit': header('Requests allowed in the current window', 'integer'),
  'RateLimit-Remaining': header('Requests still allowed in the window', 'integer'),
  'RateLimit-Reset': header('Seconds until the window resets', 'integer'),
  'RateLimit-Policy': header('quota;w=window-seconds', 'string'),
} as const;

function bodySchema(body: z.ZodObject, { wrapper, beside }: EndpointSpec): JsonSchema {
  const fields = jsonSchema(body, 'input');
  if (wrapper === undefined) return fields;
  const outer = beside ? jsonSchema(beside, 'input') : {};
  return {
    type: 'object',
    required: [wrapper],
    properties: { [wrapper]: fields, ...(outer['properties'] as object | undefined) },
  };
}

function queryParameters(query: z.ZodObject | undefined): MethodDecorator[] {
  if (!query) return [];
  const { properties } = jsonSchema(query, 'input');
  return Object.entries(properties as Record<string, JsonSchema>).map(([name, schema]) => {
    const { description, ...rest } = schema;
    return ApiQuery({
      name,
      required: false,
      schema: rest,
      ...(typeof description === 'string' && { description }),
    });
  });
}

/** JSON Schema of a zod schema; named ones move to the document's components. */
function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const { properties, $defs } = z.toJSONSchema(z.object({ it: schema }), {
    io,
    unrepresentable: 'any',
    // The library leaves the default of whatever transforms its input out; ours means the wire's value.
    override: ({ zodSchema, jsonSchema: made }) => {
      const meta = z.globalRegistry.get(zodSchema);
      if (io === 'input' && meta && 'default' in meta)
        Object.assign(made, { default: meta['default'] });
    },
  });
  for (const [name, definition] of Object.entries($defs ?? {})) {
    components[name] = pointToComponents(definition as JsonSchema);
  }
  return pointToComponents(properties?.['it'] as JsonSchema);
}

function pointToComponents(schema: JsonSchema): JsonSchema {
  const text = JSON.stringify(schema, (key, value: unknown) =>
    key === 'id' && typeof value === 'string' ? undefined : value,
  );
  return JSON.parse(text.replaceAll('"#/$defs/', '"#/components/schemas/')) as JsonSchema;
}
