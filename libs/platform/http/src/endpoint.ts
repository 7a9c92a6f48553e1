import { applyDecorators, HttpCode, type Type } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { deferSwaggerDecorators } from './documentation.js';
import type { RecordLookup } from './record.js';
import { setRouteConfig } from './route-config.js';
import { recordInputTypes } from './unknown-input.js';

/** A group of operations in the docs, declared by the context that it belongs to. */
export type Tag = {
  name: string;
  description: string;
  /** Groups are listed by this number, the lowest first. */
  order: number;
};

const RECORD_ID = { type: 'integer', format: 'int64', example: 1 };

/** A part of a path: an integer id by its name alone, or anything else with its description. */
export type PathParameter = string | { name: string; schema: object; description: string };

export type EndpointSpec = {
  /** operationId, and the method's name in the client. */
  id: string;
  /** The name of a tag that a controller declares. */
  tag: string;
  summary: string;
  description?: string;
  path?: PathParameter[];
  status: 200 | 201 | 204;
  /** The body is a picture, see `TakesPicture`; the media types and what they are. */
  picture?: { types: readonly string[]; description: string };
  /** A DTO class; in brackets: a list of it. */
  response?: Type | [Type];
  /** Only those that do not follow from the method, the token and the limits; 422 follows from `Prefer` everywhere. */
  errors?: (404 | 422)[];
  /** The path's record: that it does not exist (404) is reported before field errors (422). */
  record?: RecordLookup;
  /** No token needed. */
  isPublic?: boolean;
};

/** A public event: delivered whole as `envelope`, or only its `data` as `flat`. */
export type PublishedEvent = {
  type: string;
  summary: string;
  envelope: Type;
  data: Type;
};

/** All declarations; the OpenAPI document is made from them. */
export const endpoints = new Map<string, EndpointSpec>();
export const tags = new Map<string, Tag>();
export const publishedEvents = new Map<string, PublishedEvent>();

export function Endpoint(spec: EndpointSpec): MethodDecorator {
  const { id, tag, summary, description, path = [], status, response, record } = spec;
  if (endpoints.has(id)) throw new Error(`two operations are called ${id}`);
  endpoints.set(id, spec);
  const [type] = [response].flat();
  return applyDecorators(
    HttpCode(status),
    // The gate runs before Nest knows the handler, and the filter of errors is not told of it.
    setRouteConfig({ operation: id, ...(record && { record }) }),
    deferSwaggerDecorators(({ ApiOperation, ApiParam, ApiResponse }) => [
      ApiOperation({ operationId: id, tags: [tag], summary, ...(description && { description }) }),
      ...path.map((part) =>
        ApiParam(typeof part === 'string' ? { name: part, ...RECORD_ID } : part),
      ),
      ApiResponse({
        status,
        description: type ? 'Done' : 'Done, with no body',
        ...(type && { type, isArray: Array.isArray(response) }),
      }),
    ]),
    recordInputTypes(),
  );
}

/** The id of the operation that a request is for; undefined where no `@Endpoint` answers. */
export function getOperation({ routeOptions }: FastifyRequest): string | undefined {
  return (routeOptions.config as { operation?: string }).operation;
}

/** On the controller that leads its group; others name the tag in their `@Endpoint`. */
export function DeclaresTag(tag: Tag): ClassDecorator {
  return () => {
    if (tags.has(tag.name)) throw new Error(`two tags are called ${tag.name}`);
    tags.set(tag.name, tag);
  };
}

/** Declares the events that a controller's subscribers receive, for the OpenAPI document. */
export function PublishesEvents(specs: PublishedEvent[]): ClassDecorator {
  return (controller) => {
    for (const spec of specs) publishedEvents.set(spec.type, spec);
    deferSwaggerDecorators(({ ApiExtraModels }) => [
      ApiExtraModels(...specs.flatMap(({ envelope, data }) => [envelope, data])),
    ])(controller);
  };
}
