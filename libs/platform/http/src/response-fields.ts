import type { Type } from '@nestjs/common';
import type { ApiPropertyOptions } from '@nestjs/swagger';
import { documented } from './documentation.js';

/** Fields of responses, for the OpenAPI document: what a `…Json` function writes. */

type Words = {
  description?: string;
  example?: unknown;
  nullable?: true;
  optional?: true;
};

export function IntegerProperty(words: Words & { minimum?: number } = {}): PropertyDecorator {
  return property({ type: 'integer' }, words);
}

export function NumberProperty(words: Words = {}): PropertyDecorator {
  return property({ type: 'number' }, words);
}

/** @param only for a property with one fixed value */
export function BooleanProperty({
  only,
  ...words
}: Words & { only?: boolean } = {}): PropertyDecorator {
  return property({ type: 'boolean', ...(only !== undefined && { enum: [only] }) }, words);
}

export function TextProperty(words: Words & { format?: string } = {}): PropertyDecorator {
  return property({ type: 'string' }, words);
}

/** ISO 8601, UTC, milliseconds, `Z`. */
export function TimestampProperty(words: Words = {}): PropertyDecorator {
  return property(
    { type: 'string', format: 'date-time', example: '2026-03-01T12:00:00.000Z' },
    words,
  );
}

export function OneOfProperty(values: readonly string[], words: Words = {}): PropertyDecorator {
  return property({ type: 'string', enum: values }, words);
}

/** A JSON object of any content. */
export function JsonProperty(words: Words = {}): PropertyDecorator {
  return property({ type: 'object', additionalProperties: true }, words);
}

/** Another DTO class. */
export function ObjectProperty(type: () => Type, words: Words = {}): PropertyDecorator {
  // @nestjs/swagger recognises a lazy reference by the name of its function.
  return property({ type: () => type() }, words);
}

/** A list of another DTO class. */
export function ObjectsProperty(type: () => Type, words: Words = {}): PropertyDecorator {
  return property({ type: () => type(), isArray: true }, words);
}

/** @param items further schema of the elements */
export function TextsProperty(items: object = {}, words: Words = {}): PropertyDecorator {
  return property({ type: 'array', items: { type: 'string', ...items } }, words);
}

/** Messages by field. */
export function FieldErrorsProperty(words: Words = {}): PropertyDecorator {
  const messages = { type: 'array', items: { type: 'string' } };
  return property({ type: 'object', additionalProperties: messages }, words);
}

function property(schema: object, { optional, ...words }: Words): PropertyDecorator {
  const options = { ...schema, ...words, required: !optional } as ApiPropertyOptions;
  return documented(({ ApiProperty }) => [ApiProperty(options)]);
}
