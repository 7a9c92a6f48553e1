import { applyDecorators, HttpCode, type Type } from '@nestjs/common';
import { deferSwaggerDecorators } from './documentation.js';
import { recordInputTypes } from './input.js';
import type { RecordLookup } from './record.js';
import { setRouteConfig } from './route-config.js';

/** A group of operations in the documentation. */
export type Tag = {
  name: string;
  description: string;
  /** Position of the group; the lowest comes first. */
  order: number;
};

const RECORD_ID = { type: 'integer', format: 'int64', example: 1 };

/** A path parameter: an integer id by its name, or any other with its description. */
export type PathParameter = string | { name: string; schema: object; description: string };

export type EndpointSpec = {
  /** operationId, and the name of the client's method. */
  id: string;
  /** Name of a tag that a controller declares. */
  tag: string;
  summary: string;
  description?: string;
  path?: PathParameter[];
  status: 200 | 201 | 202 | 204;
  /** A second status with the same body, and when it is sent. */
  otherStatus?: { status: 200; description: string };
  /** Describes a body that is a picture, see `TakesPicture`. */
  picture?: string;
  /** Runtime expression for the address to which the operation lets events be sent. */
  callback?: string;
  /** Media types of a response that is a file of text, with an example of each. */
  download?: Readonly<Record<string, string>>;
  /** Describes a body that is a text file, see `TakesFile`. */
  file?: string;
  /** Media type of the response for callers who prefer it to JSON. */
  alternative?: string;
  /** DTO class of the response; in brackets for a list. */
  response?: Type | [Type];
  /** Errors that do not follow from the method, the token and the limits. A 422 follows from `Prefer` everywhere. */
  errors?: (403 | 404 | 422)[];
  /** Codes of a 422 that say more than that a field is not valid. */
  codes?: readonly string[];
  /** Looks up the path's record: a missing one (404) is reported before field errors (422), see CONV-38. */
  record?: RecordLookup;
  /** Whether it reads more than a page of records by their index. Such reads of accounts share slots fairly. */
  readsMuch?: boolean;
  /** Whether the operation needs no token. */
  isPublic?: boolean;
};

/** A public event: delivered as `envelope`, or only its `data` as `flat`. */
export type PublishedEvent = {
  type: string;
  summary: string;
  details?: string;
  envelope: Type;
  data: Type;
};

/** All declared operations; the OpenAPI document is generated from them. */
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
    // The request guard runs before Nest knows the handler, and the error filter never does.
    setRouteConfig({ operation: id, ...(record && { record }) }),
    deferSwaggerDecorators(({ ApiOperation, ApiParam, ApiResponse }) => [
      ApiOperation({ operationId: id, tags: [tag], summary, ...(description && { description }) }),
      ...path.map((part) =>
        ApiParam(typeof part === 'string' ? { name: part, ...RECORD_ID } : part),
      ),
      ApiResponse({
        status,
        description: type || spec.file ? 'Done' : 'Done, with no body',
        ...(type && { type, isArray: Array.isArray(response) }),
      }),
    ]),
    recordInputTypes(),
  );
}

/** Declares a group of operations, on one of its controllers; others name the tag in their `@Endpoint`. */
export function DeclaresTag(tag: Tag): ClassDecorator {
  return () => {
    if (tags.has(tag.name)) throw new Error(`two tags are called ${tag.name}`);
    tags.set(tag.name, tag);
  };
}

/** Declares the events that subscribers receive, for the OpenAPI document. */
export function PublishesEvents(specs: PublishedEvent[]): ClassDecorator {
  return (controller) => {
    for (const spec of specs) publishedEvents.set(spec.type, spec);
    deferSwaggerDecorators(({ ApiExtraModels }) => [
      ApiExtraModels(...specs.flatMap(({ envelope, data }) => [envelope, data])),
    ])(controller);
  };
}
