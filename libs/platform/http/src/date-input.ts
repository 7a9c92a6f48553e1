import type { FastifyInstance } from 'fastify';
import type { GatedRequest } from './caller.js';
import { hasDate, setTimeZone } from './fields.pipe.js';
import { takesOf } from './unknown-input.js';

/** Implemented by the accounts. */
export abstract class AccountTimeZones {
  /** @throws NotFoundError */
  abstract timeZoneOf(accountId: number): Promise<string>;
}

/**
 * Looks up the time zone of the account of a request that has a date where a time is meant, before its fields are read.
 * A request that names no account is read in UTC.
 */
export function readDatesInAccountTime(server: FastifyInstance, timeZones: AccountTimeZones): void {
  server.addHook('preHandler', (request, _reply, done) => {
    const { accountId, query, body } = request as GatedRequest;
    const takes = takesOf(request);
    if (!takes || accountId === undefined) return done();
    const dated = [
      takes.query && hasDate(takes.query, query) ? query : null,
      takes.body && hasDate(takes.body, body) ? body : null,
    ].filter((given) => given !== null);
    if (dated.length === 0) return done();
    timeZones
      .timeZoneOf(accountId)
      .then((timeZone) => dated.forEach((given) => setTimeZone(given, timeZone)))
      .then(() => done(), done);
  });
}
