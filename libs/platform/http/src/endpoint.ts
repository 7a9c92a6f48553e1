import { applyDecorators, HttpCode } from '@nestjs/common';
import { ApiOperation } from '@nestjs/swagger';
import { z } from 'zod';

/** What the operations are sorted by in the docs, in this order. */
export const TAGS = {
  Status: 'Whether the service is up, and which limit and version are in force. Needs no token.',
  Stores: 'The stores that a token reaches; paths call them accounts.',
  Cards: 'Templates of stamp cards: their looks, and how many stamps fill them.',
  Rewards: 'What a card earns at a number of stamps.',
  Customers: 'The members of a store’s programme, found by a term or by an id of another system.',
  'Customer cards': 'A customer’s own card: stamp it, and redeem rewards from it.',
  Locations: 'The physical shops of a store. Their addresses are looked up for the wallets.',
  Posters: 'Printed signup posters, each with a public signup URL.',
  'Webhook subscriptions': 'Where the events of a store are sent, signed.',
  'Webhook deliveries': 'What was and is to be sent to a subscription, and sending it again.',
} as const;

export type EndpointSpec = {
  /** operationId, and the method's name in the client. */
  id: string;
  tag: keyof typeof TAGS;
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
  /** Those that follow from the method, the token and the limits are added by themselves. */
  errors?: (404 | 422)[];
  /** No token needed. */
  open?: boolean;
};

/** An event that receivers get: whole as `envelope`, or only its `data` as `flat`. */
export type PublishedWebhook = {
  type: string;
  summary: string;
  envelope: z.ZodObject;
  data: z.ZodObject;
};

/** What was declared so far, by operationId and by type. The OpenAPI document is made of it. */
export const endpoints = new Map<string, EndpointSpec>();
export const publishedWebhooks = new Map<string, PublishedWebhook>();

/** One declaration of an operation: what Nest answers with and what the OpenAPI document says. */
export function Endpoint(spec: EndpointSpec): MethodDecorator {
  if (endpoints.has(spec.id)) throw new Error(`two operations are called ${spec.id}`);
  endpoints.set(spec.id, spec);
  return applyDecorators(HttpCode(spec.status), ApiOperation({ operationId: spec.id }));
}

/** The events that a controller's subscribers are sent, for the OpenAPI document's webhooks. */
export function PublishesWebhooks(specs: PublishedWebhook[]): ClassDecorator {
  return () => {
    for (const spec of specs) publishedWebhooks.set(spec.type, spec);
  };
}
