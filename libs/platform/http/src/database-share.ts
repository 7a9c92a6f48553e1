import type { FastifyRequest } from 'fastify';
import { findWait } from '#database/database-waits.js';
import type { AuthenticatedRequest } from './caller.js';
import { endpoints, getOperation } from './endpoint.js';

/** Enters the account of the path: from now on its requests share the database with those of others. */
export function enterAccount(request: AuthenticatedRequest, accountId: number): void {
  request.accountId = accountId;
  shareDatabase(request, accountId);
}

/** Tells whose the request is, among those who share the database. */
export function shareDatabase(request: FastifyRequest, owner: string | number): void {
  const wait = findWait();
  if (!wait) return;
  wait.owner = owner;
  wait.readsMuch = readsMuch(request);
}

/** Tells whether a request reads much: by its operation, or because it reads a past state from the history. */
function readsMuch(request: FastifyRequest): boolean {
  const { as_of } = (request.query ?? {}) as { as_of?: unknown };
  return as_of !== undefined || endpoints.get(getOperation(request) ?? '')?.readsMuch === true;
}
