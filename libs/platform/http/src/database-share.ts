import type { FastifyInstance, FastifyRequest } from 'fastify';
import { DatabaseWait, findWait, runWithWait } from '#database/database-waits.js';
import type { AuthenticatedRequest } from './caller.js';
import { endpoints, getOperation } from './endpoint.js';
import { getNetworkKey } from './rate-limit.js';

type WaitingRequest = FastifyRequest & { wait?: DatabaseWait };

/** Follows how each request uses the database, which they share (ADR-0134). */
export function followDatabaseUse(server: FastifyInstance): void {
  server.addHook('onRequest', (request, reply, done) => {
    const wait = new DatabaseWait(undefined, () => reply.raw.closed);
    // Until the guards know a better owner: strangers together get no more than one account.
    wait.owner = `network ${getNetworkKey(request.ip)}`;
    (request as WaitingRequest).wait = wait;
    runWithWait(wait, done);
  });
  // Again, since the body is parsed in the context of its connection.
  server.addHook('preValidation', (request, _reply, done) => {
    runWithWait((request as WaitingRequest).wait, done);
  });
}

/** Returns how long the request has waited for the database. */
export function getDatabaseMs(request: FastifyRequest): number {
  return (request as WaitingRequest).wait?.milliseconds ?? 0;
}

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
