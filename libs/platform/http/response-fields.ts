import type { Type } from '@nestjs/common';
import type { ApiPropertyOptions } from '@nestjs/swagger';
import { deferSwaggerDecorators } from './documentation.js';

/** Declare the fields of responses, for the OpenAPI document: they describe what a `…Json` function renders. */

export type PropertyDocs = {
  description?: string;
  example?: unknown;
  nullable?: boolean;
  optional?: true;
};

export function IntegerProperty(
  words: PropertyDocs & { minimum?: number } = {},
): PropertyDecorator {
  return defineProperty({ type: 'integer' }, words);
}

export function NumberProperty(words: PropertyDocs = {}): PropertyDecorator {
  return defineProperty({ type: 'number' }, words);
}

/** @param only for a property with one fixed value */
export function BooleanProperty({
  only,
  ...words
}: PropertyDocs & { only?: boolean } = {}): PropertyDecorator {
  return defineProperty({ type: 'boolean', ...(only !== undefined && { enum: [only] }) }, words);
}

export function TextProperty(words: PropertyDocs & { format?: string } = {}): PropertyDecorator {
  return defineProperty({ type: 'string' }, words);
}

/** Declares a time: ISO 8601, UTC, milliseconds, `Z`. */
export function TimestampProperty(words: PropertyDocs = {}): PropertyDecorator {
  return defineProperty(
    { type: 'string', format: 'date-time', example: '2026-03-01T12:00:00.000Z' },
    words,
  );
}

export function OneOfProperty(
  values: readonly string[],
  words: PropertyDocs = {},
): PropertyDecorator {
  return defineProperty({ type: 'string', enum: values }, words);
}

/** Declares a JSON object of any content. */
export function JsonProperty(words: PropertyDocs = {}): PropertyDecorator {
  return defineProperty({ type: 'object', additionalProperties: true }, words);
}

/** Declares an object of another DTO class. */
export function ObjectProperty(type: () => Type, words: PropertyDocs = {}): PropertyDecorator {
  // @nestjs/swagger recognises a lazy reference by the name of its function.
  return defineProperty({ type: () => type() }, words);
}

/** Declares a list of objects of another DTO class. */
export function ObjectsProperty(type: () => Type, words: PropertyDocs = {}): PropertyDecorator {
  return defineProperty({ type: () => type(), isArray: true }, words);
}

/** Declares an object of one of several DTO classes, by the names of their schemas. */
export function AnyObjectProperty(names: string[], words: PropertyDocs = {}): PropertyDecorator {
  const anyOf = names.map((name) => ({ $ref: `#/components/schemas/${name}` }));
  return defineProperty({ anyOf }, words);
}

/** @param items further schema of the elements */
export function TextsProperty(items: object = {}, words: PropertyDocs = {}): PropertyDecorator {
  return defineProperty({ type: 'array', items: { type: 'string', ...items } }, words);
}

export function IntegersProperty(words: PropertyDocs = {}): PropertyDecorator {
  return defineProperty({ type: 'array', items: { type: 'integer' } }, words);
}

/** Declares a list of lists of integers, of fixed lengths. */
export function IntegerTableProperty(
  rows: number,
  columns: number,
  words: PropertyDocs = {},
): PropertyDecorator {
  const numbers = {
    type: 'array',
    minItems: columns,
    maxItems: columns,
    items: { type: 'integer' },
  };
  return defineProperty({ type: 'array', minItems: rows, maxItems: rows, items: numbers }, words);
}

/** Declares messages by field. */
export function FieldErrorsProperty(words: PropertyDocs = {}): PropertyDecorator {
  const messages = { type: 'array', items: { type: 'string' } };
  return defineProperty({ type: 'object', additionalProperties: messages }, words);
}

function defineProperty(schema: object, { optional, ...words }: PropertyDocs): PropertyDecorator {
  const options = { ...schema, ...words, required: !optional } as ApiPropertyOptions;
  return deferSwaggerDecorators(({ ApiProperty }) => [ApiProperty(options)]);
}
