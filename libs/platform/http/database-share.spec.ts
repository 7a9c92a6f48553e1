import { describe, expect, it } from '@jest/globals';
import type { FastifyRequest } from 'fastify';
import { DatabaseWait, runWithWait } from '#platform/database/database-waits.js';
import { shareDatabase } from './database-share.js';

/** Tells whether a request counts as a large read. */
function readsMuch(method: string, query: object): boolean {
  const wait = new DatabaseWait();
  const config = { access: { readsMuch: false } };
  const request = { method, query, routeOptions: { config } } as unknown as FastifyRequest;
  runWithWait(wait, () => shareDatabase(request, 1));
  return wait.readsMuch;
}

describe('shareDatabase', () => {
  it.each(['GET', 'HEAD'])('counts %s of the past as a large read', (method) => {
    expect(readsMuch(method, { as_of: '2026-01-01T00:00:00Z' })).toBe(true);
    expect(readsMuch(method, {})).toBe(false);
  });

  it.each(['POST', 'PATCH', 'PUT', 'DELETE'])(
    'does not count %s as one, which writes whatever its query says',
    (method) => {
      expect(readsMuch(method, { as_of: '2026-01-01T00:00:00Z' })).toBe(false);
    },
  );
});
