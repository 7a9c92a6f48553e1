import type { FastifyRequest } from 'fastify';
import { findWait } from '#platform/database/database-waits.js';
import { getRouteAccess } from './route-access.js';

/** Tells the database whose the request is: from now on it shares the connections with others of that owner. */
export function shareDatabase(request: FastifyRequest, owner: string | number): void {
  const wait = findWait();
  if (!wait) return;
  wait.owner = owner;
  // By its operation, or because it reads a past state from the history.
  const { as_of } = (request.query ?? {}) as { as_of?: unknown };
  wait.readsMuch = as_of !== undefined || getRouteAccess(request).readsMuch;
}
