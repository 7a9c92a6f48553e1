import type { FastifyRequest } from 'fastify';
import { setRouteConfig } from './route-config.js';

type BodyConfig = { takesForm?: true };

/** Fields of a form. Of fields with the same name the last counts. */
export type Form = Readonly<Record<string, string | undefined>>;

/** Declares that the body is a form instead of JSON. */
export function TakesForm(): MethodDecorator {
  const config: BodyConfig = { takesForm: true };
  return setRouteConfig(config);
}

export function takesForm({ routeOptions }: FastifyRequest): boolean {
  return (routeOptions.config as BodyConfig).takesForm === true;
}
