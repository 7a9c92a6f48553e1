import { applyDecorators, HttpCode, SetMetadata, UseInterceptors, type Type } from '@nestjs/common';
import { ApiExtraModels, ApiOperation, ApiParam, ApiResponse } from '@nestjs/swagger';
import { RECORD, RecordInterceptor, type RecordLookup } from './record.interceptor.js';

/** Groups of operations in the docs, in this order. */
export const TAGS = {
  Status: 'Whether the service is up, and which limit and version are in force. Needs no token.',
  Stores: 'The stores that a token may access; paths call them accounts.',
  Cards: 'Templates of stamp cards: their looks, and how many stamps fill them.',
  Rewards: 'What a customer gets for a number of stamps on a card.',
  Customers:
    'The members of a store’s programme, found by a search term or by another system’s id.',
  'Customer cards': 'A customer’s own card: stamp it, and redeem rewards from it.',
  Locations: 'The physical shops of a store. Their addresses are geocoded for the wallets.',
  Posters: 'Printed signup posters, each with a public signup URL.',
  'Webhook subscriptions': 'Where a store’s events are sent, with a signature.',
  'Webhook deliveries': 'What has been and will be sent to a subscription, and sending it again.',
} as const;

export type EndpointSpec = {
  /** operationId, and the method's name in the client. */
  id: string;
  tag: keyof typeof TAGS;
  summary: string;
  description?: string;
  /** Path ids, each an integer. */
  path?: string[];
  status: 200 | 201 | 204;
  /** A DTO class; in brackets: a list of it. */
  answer?: Type | [Type];
  /** Only those that do not follow from the method, the token and the limits. */
  errors?: (404 | 422)[];
  /** The path's record: that it does not exist (404) is reported before field errors (422). */
  record?: RecordLookup;
  /** No token needed. */
  open?: boolean;
};

/** A public event: delivered whole as `envelope`, or only its `data` as `flat`. */
export type PublishedWebhook = {
  type: string;
  summary: string;
  envelope: Type;
  data: Type;
};

/** All declarations; the OpenAPI document is made from them. */
export const endpoints = new Map<string, EndpointSpec>();
export const publishedWebhooks = new Map<string, PublishedWebhook>();

export function Endpoint(spec: EndpointSpec): MethodDecorator {
  const { id, tag, summary, description, path = [], status, answer, record } = spec;
  if (endpoints.has(id)) throw new Error(`two operations are called ${id}`);
  endpoints.set(id, spec);
  const [type] = [answer].flat();
  return applyDecorators(
    HttpCode(status),
    ApiOperation({ operationId: id, tags: [tag], summary, ...(description && { description }) }),
    ...path.map((name) => ApiParam({ name, type: 'integer', format: 'int64', example: 1 })),
    ApiResponse({
      status,
      description: type ? 'Done' : 'Done, with no body',
      ...(type && { type, isArray: Array.isArray(answer) }),
    }),
    ...(record ? [SetMetadata(RECORD, record), UseInterceptors(RecordInterceptor)] : []),
  );
}

/** The events that a controller's subscribers receive, for the OpenAPI document's webhooks. */
export function PublishesWebhooks(specs: PublishedWebhook[]): ClassDecorator {
  return (controller) => {
    for (const spec of specs) publishedWebhooks.set(spec.type, spec);
    ApiExtraModels(...specs.flatMap(({ envelope, data }) => [envelope, data]))(controller);
  };
}
