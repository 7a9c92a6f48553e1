import type { Type } from '@nestjs/common';
import type { Form } from '#platform/http/body-kinds.js';
import { getFields, type CompiledField } from '#platform/http/dtos.js';
import { camelCase, type CamelCase } from '#platform/http/resource-fields.js';

/** What an input shows: whether a box is ticked, which boxes of a list are, or a text. */
export type Entered<V> = [NonNullable<V>] extends [boolean]
  ? boolean
  : [NonNullable<V>] extends [readonly unknown[]]
    ? string[]
    : string;

/** The parameters that the part of a field takes from its form. */
export type Inputs = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** The entered values of a form, which it shows again when it was rejected. */
export type ValuesOf<F extends { read(form: Form): unknown }> = ReturnType<F['read']>;

const TYPES: Readonly<Record<string, string>> = { integer: 'number', email: 'email', uri: 'url' };

/**
 * Defines a form by fields of a request: what they require and allow follows from their declaration. A list
 * of values is a box for each that may be chosen, named `card_ids:7`.
 * @param names of the fields that the form has
 */
export function defineForm<D extends object, const N extends keyof D & string>(
  dto: Type<D>,
  names: readonly N[],
) {
  type Values = { [K in N]: Entered<D[K]> };
  type Stored = { [K in N]?: unknown } | { [K in N as CamelCase<K>]?: unknown };
  const fields = names.map((name) => {
    const field = getFields(dto).fields.find((candidate) => candidate.name === name);
    if (!field) throw new Error(`there is no field ${name}`);
    return field;
  });
  const mapValues = (getValue: (field: CompiledField) => unknown) =>
    Object.fromEntries(
      fields.map((field) => [field.name, toEntered(field.schema['type'], getValue(field))]),
    ) as Values;
  return {
    /** Reads the entered values: texts trimmed, with the line ends of the API. One that is not sent has its default. */
    read: (form: Form) =>
      mapValues(({ name, schema, byDefault }) => {
        if (schema['type'] === 'boolean') return form[name];
        if (schema['type'] === 'array') return listTicked(form, `${name}:`);
        return form[name]?.trim().replaceAll('\r\n', '\n') ?? byDefault;
      }),
    /** Fills the form with a record, and what that does not have with the defaults of the API. */
    toValues: (record: Stored) =>
      mapValues(({ name, byDefault }) => {
        const stored: Readonly<Record<string, unknown>> = record;
        return stored[name] ?? stored[camelCase(name)] ?? byDefault;
      }),
    /** Creates what the parts of a page show. */
    toInputs: (values: Values): Inputs =>
      Object.fromEntries(
        fields.flatMap((field): [string, Inputs[string]][] => {
          const { name } = field;
          const value: boolean | string | string[] = values[name as N];
          if (typeof value === 'string') return [[name, { value, ...toLimits(field) }]];
          if (typeof value === 'boolean') return [[name, { checked: value }]];
          return value.map((choice) => [`${name}:${choice}`, { checked: true }]);
        }),
      ),
  };
}

/** Lists what is ticked of the boxes whose names begin like this. */
function listTicked(form: Form, prefix: string): string[] {
  return Object.keys(form).flatMap((name) =>
    name.startsWith(prefix) ? [name.slice(prefix.length)] : [],
  );
}

function toEntered(type: unknown, value: unknown): boolean | string | string[] {
  if (type === 'boolean') return Boolean(value);
  return type === 'array' ? [value ?? []].flat().map(String) : String(value ?? '');
}

function toLimits({ schema, isNullable, byDefault }: CompiledField): Inputs[string] {
  const { type, format, maxLength, minimum, maximum } = schema;
  return {
    type: TYPES[String(format ?? type)],
    ...(type === 'integer' && {
      inputmode: 'numeric',
      min: toLimit(minimum),
      max: toLimit(maximum),
    }),
    required: !isNullable && byDefault === undefined,
    maxlength: maxLength,
  };
}

/** Leaves out the limits of every integer. */
function toLimit(value: unknown): unknown {
  return Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER ? undefined : value;
}
