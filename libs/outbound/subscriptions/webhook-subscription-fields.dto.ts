import { ArrayMaxSize, ArrayNotEmpty, IsArray, IsIn, IsObject } from 'class-validator';
import { isBlank, toInteger, toText } from '#platform/http/conversions.js';
import {
  Check,
  Field,
  textKind,
  type FieldKind,
  type FieldOptions,
} from '#platform/http/fields.js';
import { defineKind } from '#platform/http/resource-fields.js';
import {
  IntegersProperty,
  JsonProperty,
  TextProperty,
  TextsProperty,
} from '#platform/http/response-fields.js';
import { PUBLIC_EVENTS } from '#outbound/public-events/public-events.js';
import { MOST_PERMISSIVE, findTargetUrlIssue } from '#outbound/sending/target-address.js';
import {
  findHeadersIssue,
  HEADER_NAME,
  HEADER_VALUE,
  HIDDEN_VALUE,
  MAX_HEADER_NAME_LENGTH,
  MAX_HEADER_VALUE_LENGTH,
  MAX_HEADERS,
  type CustomHeaders,
} from '#outbound/sending/webhook-headers.js';
import { EVERY_EVENT } from './webhook-subscription.js';
import { ISSUES } from '#translations/issues.js';

/** Declare the fields of webhook subscriptions that have rules of their own. */

export const SUBSCRIBABLE = [...PUBLIC_EVENTS, EVERY_EVENT] as const;
const MAX_URL_LENGTH = 2048;
const MAX_IDS = 100;

export const eventsField = defineKind<string[]>(EventsField, (docs) =>
  TextsProperty({ enum: SUBSCRIBABLE }, docs),
);
export const targetUrlField = defineKind<string>(TargetUrlField, (docs) =>
  TextProperty({ format: 'uri', ...docs }),
);
export const headersField = defineKind<CustomHeaders>(HeadersField, JsonProperty);
export const idsField = defineKind<number[]>(IdsField, IntegersProperty);

/** Checks only what no setting can allow; the commands check what depends on the settings. */
function TargetUrlField(options: FieldOptions): PropertyDecorator {
  const description = 'Publicly reachable https URL';
  const kind: FieldKind = {
    ...textKind(
      MAX_URL_LENGTH,
      Check((text: string) => findTargetUrlIssue(text, MOST_PERMISSIVE)),
    ),
    schema: { type: 'string', minLength: 1, maxLength: MAX_URL_LENGTH, format: 'uri' },
    // Not trimmed: a URL with white space around it may have lost something else as well.
    convert: (value) => (isBlank(value) ? toText(value) : value),
    finish: (text: string) => new URL(text).href,
  };
  return Field(kind, { ...options, description });
}

function EventsField(options: FieldOptions): PropertyDecorator {
  const items = { type: 'string', enum: SUBSCRIBABLE };
  const kind: FieldKind = {
    schema: { type: 'array', minItems: 1, items },
    validators: [
      IsArray({ context: ISSUES.not_list_of_events }),
      ArrayNotEmpty({ context: ISSUES.no_event }),
      IsIn(SUBSCRIBABLE, {
        each: true,
        context: ISSUES.unknown_event_type({ types: SUBSCRIBABLE.join(', ') }),
      }),
      Check((names: string[]) =>
        names.includes(EVERY_EVENT) && new Set(names).size > 1
          ? ISSUES.every_event_alone({ name: EVERY_EVENT })
          : undefined,
      ),
    ],
    finish: (names: string[]) => [...new Set(names)],
  };
  return Field(kind, options);
}

function HeadersField(options: FieldOptions): PropertyDecorator {
  const isUpdate = options.clearable === true;
  const kind: FieldKind = {
    schema: {
      type: 'object',
      maxProperties: MAX_HEADERS,
      propertyNames: { pattern: HEADER_NAME.source, maxLength: MAX_HEADER_NAME_LENGTH },
      additionalProperties: {
        type: 'string',
        minLength: 1,
        maxLength: MAX_HEADER_VALUE_LENGTH,
        pattern: isUpdate ? `${HEADER_VALUE.source}|^${HIDDEN_VALUE}$` : HEADER_VALUE.source,
      },
    },
    validators: [
      IsObject({ context: ISSUES.headers_not_object }),
      Check((headers: Record<string, unknown>) => findHeadersIssue(headers, isUpdate)),
    ],
    finish: (headers: CustomHeaders) => ({ ...headers }),
  };
  return Field(kind, { ...options, example: { 'X-Api-Key': 'a-key-of-your-receiver' } });
}

/** A list of ids, each of which may be sent as a string (CONV-13). */
function IdsField(options: FieldOptions): PropertyDecorator {
  const isId = (id: unknown) => Number.isSafeInteger(id) && Number(id) > 0;
  const kind: FieldKind = {
    schema: {
      type: 'array',
      minItems: 1,
      maxItems: MAX_IDS,
      items: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
    },
    convert: (value) => (Array.isArray(value) ? value.map((id) => toInteger(id)) : value),
    validators: [
      IsArray({ context: ISSUES.not_list_of_ids }),
      ArrayNotEmpty({ context: ISSUES.no_ids }),
      ArrayMaxSize(MAX_IDS, { context: ISSUES.too_many_ids({ max: MAX_IDS }) }),
      Check((ids: unknown[]) => (ids.every(isId) ? undefined : ISSUES.not_list_of_ids)),
    ],
    finish: (ids: number[]) => [...new Set(ids)],
  };
  return Field(kind, { ...options, example: null });
}
