import type { z } from 'zod';
import { InvalidFieldsError, NotFoundError, type FieldErrors } from '#kernel/errors.js';

type BodyOptions = {
  /** Write bodies are wrapped in an object of this name (contract section 1). */
  wrapper?: string;
  /** Fields of which one is enough to accept the body without its wrapper. */
  bare?: readonly string[];
  /**
   * Throws when the record of the path is not there: that is said before any fault of the fields
   * (order of checks, contract section 1), and looked up here only when there is such a fault.
   */
  record?: () => Promise<unknown>;
};

/** @throws InvalidFieldsError with every fault of every field, keyed by field */
export async function readBody<T>(
  schema: z.ZodType<T>,
  body: unknown,
  options: BodyOptions = {},
): Promise<T> {
  const unwrapped = unwrap(body, options);
  const faults = 'faults' in unwrapped ? unwrapped.faults : undefined;
  const parsed = faults
    ? undefined
    : schema.safeParse('fields' in unwrapped ? unwrapped.fields : {});
  if (parsed?.success) return parsed.data;
  await options.record?.();
  throw new InvalidFieldsError(faults ?? fieldErrors(parsed?.error));
}

/** Query parameters: checked like fields, an array (`?a=1&a=2`) counts as its last value. */
export function readQuery<T>(schema: z.ZodType<T>, query: unknown): T {
  const single = Object.fromEntries(
    Object.entries(isObject(query) ? query : {}).map(([key, value]) => [
      key,
      Array.isArray(value) ? value.at(-1) : value,
    ]),
  );
  const parsed = schema.safeParse(single);
  if (!parsed.success) throw new InvalidFieldsError(fieldErrors(parsed.error));
  return parsed.data;
}

/** A path id: anything that cannot be the id of a record is a record that does not exist. */
export function pathId(value: string): number {
  const id = /^\d{1,19}$/.test(value) ? Number(value) : NaN;
  if (!Number.isSafeInteger(id)) throw new NotFoundError('Record');
  return id;
}

function unwrap(
  body: unknown,
  { wrapper, bare = [] }: BodyOptions,
): { fields: object } | { faults: FieldErrors } {
  const given = body === undefined ? {} : body;
  if (!isObject(given)) return { faults: { base: ['The body must be a JSON object'] } };
  if (wrapper === undefined) return { fields: given };
  if (Object.hasOwn(given, wrapper)) {
    const inner = given[wrapper];
    return isObject(inner)
      ? { fields: { ...given, ...inner } }
      : { faults: { [wrapper]: ['must be an object'] } };
  }
  if (bare.some((name) => Object.hasOwn(given, name))) return { fields: given };
  return { faults: { [wrapper]: ['is required: wrap the fields in an object of this name'] } };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fieldErrors(error: z.ZodError | undefined): FieldErrors {
  const errors: FieldErrors = {};
  for (const issue of error?.issues ?? []) {
    const [name = 'base', ...rest] = issue.path.map(String);
    const message = [...rest, issue.message].join(' ');
    (errors[name] ??= []).push(message);
  }
  return errors;
}
