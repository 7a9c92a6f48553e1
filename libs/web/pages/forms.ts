import type { Type } from '@nestjs/common';
import type { Form } from '#platform/http/body-kinds.js';
import { getFields } from '#platform/http/dtos.js';
import { camelCase, type CamelCase } from '#platform/http/resource-fields.js';

/** What an input shows: a text, or whether a box is ticked. */
export type Entered<V> = [NonNullable<V>] extends [boolean] ? boolean : string;

/** The parameters that the part of a field takes from its form. */
export type Inputs = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** The entered values of a form, which it shows again when it was rejected. */
export type ValuesOf<F extends { read(form: Form): unknown }> = ReturnType<F['read']>;

const TYPES: Readonly<Record<string, string>> = { integer: 'number', email: 'email', uri: 'url' };

/**
 * Defines a form by fields of a request: what they require and allow follows from their declaration (ADR-0157).
 * @param names of the fields that the form has
 */
export function defineForm<D extends object, const N extends keyof D & string>(
  dto: Type<D>,
  names: readonly N[],
) {
  type Values = { [K in N]: Entered<D[K]> };
  type Stored = { [K in N]?: unknown } | { [K in N as CamelCase<K>]?: unknown };
  const fields = names.map((name) => {
    const field = getFields(dto).fields.find((one) => one.name === name);
    if (!field) throw new Error(`there is no field ${name}`);
    return field;
  });
  const mapValues = (getValue: (name: string, byDefault: unknown) => unknown) =>
    Object.fromEntries(
      fields.map(({ name, schema, byDefault }) => {
        const value = getValue(name, byDefault) ?? '';
        return [name, schema['type'] === 'boolean' ? Boolean(value) : String(value)];
      }),
    ) as Values;
  return {
    /** Reads the entered values: texts trimmed, with the line ends of the API. */
    read: (form: Form) => mapValues((name) => form[name]?.trim().replaceAll('\r\n', '\n')),
    /** Fills the form with a record, and what that does not have with the defaults of the API. */
    toValues: (record: Stored) =>
      mapValues((name, byDefault) => {
        const stored: Readonly<Record<string, unknown>> = record;
        return stored[name] ?? stored[camelCase(name)] ?? byDefault;
      }),
    /** Creates what the parts of a page show. */
    toInputs: (values: Values): Inputs =>
      Object.fromEntries(
        fields.map(({ name, schema, isNullable, byDefault }) => {
          const value = values[name as N];
          if (typeof value === 'boolean') return [name, { checked: value }];
          const { type, format, maxLength, minimum, maximum } = schema;
          return [
            name,
            {
              value,
              type: TYPES[String(format ?? type)],
              ...(type === 'integer' && {
                inputmode: 'numeric',
                min: toLimit(minimum),
                max: toLimit(maximum),
              }),
              required: !isNullable && byDefault === undefined,
              maxlength: maxLength,
            },
          ];
        }),
      ),
  };
}

/** Leaves out the limits of every integer. */
function toLimit(value: unknown): unknown {
  return Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER ? undefined : value;
}
