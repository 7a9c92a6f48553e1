import type { FastifyInstance } from 'fastify';
import type { AuthenticatedRequest } from './caller.js';
import { hasDate, setTimeZone } from './fields.pipe.js';
import { getInputTypes } from './unknown-input.js';

/** Finds the time zone of an account. The module of accounts implements it. */
export abstract class AccountTimeZones {
  /** @throws NotFoundError */
  abstract getTimeZone(accountId: number): Promise<string>;
}

/**
 * Looks up the account's time zone when a request has a date in place of a time (CONV-60), before its fields are
 * parsed. Requests without an account use UTC.
 */
export function readDatesInAccountTime(server: FastifyInstance, timeZones: AccountTimeZones): void {
  server.addHook('preHandler', (request, _reply, done) => {
    const { accountId, query, body } = request as AuthenticatedRequest;
    const inputTypes = getInputTypes(request);
    if (!inputTypes || accountId === undefined) return done();
    const dated = [
      inputTypes.query && hasDate(inputTypes.query, query) ? query : null,
      inputTypes.body && hasDate(inputTypes.body, body) ? body : null,
    ].filter((input) => input !== null);
    if (dated.length === 0) return done();
    timeZones
      .getTimeZone(accountId)
      .then((timeZone) => dated.forEach((input) => setTimeZone(input, timeZone)))
      .then(() => done(), done);
  });
}
