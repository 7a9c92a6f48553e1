import { TakesBody } from './body-kinds.js';

/** Fields of a form. Of fields with the same name the last counts. */
export type Form = Readonly<Record<string, string | undefined>>;

/** Declares that the body is a form instead of JSON. */
export function TakesForm(): MethodDecorator {
  return TakesBody('form');
}
