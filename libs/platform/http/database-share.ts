import type { FastifyRequest } from 'fastify';
import { findWait } from '#platform/database/database-waits.js';
import { SAFE_METHODS } from './caller.js';
import { getRouteAccess } from './route-access.js';

/** Tells the database whose the request is: from now on it shares the connections with others of that owner. */
export function shareDatabase(request: FastifyRequest, owner: string | number): void {
  const wait = findWait();
  if (!wait) return;
  wait.owner = owner;
  // By its operation, or because it reads a past state from the history.
  const { as_of } = (request.query ?? {}) as { as_of?: unknown };
  const isOfPast = as_of !== undefined && SAFE_METHODS.has(request.method);
  wait.readsMuch = isOfPast || getRouteAccess(request).readsMuch;
}
