import type { FastifyInstance, FastifyRequest } from 'fastify';
import { getInputTypes, type CheckedRequest } from './input.js';
import { renderNames, findUnknownInput } from './unknown-fields.js';

/**
 * Names unknown input in a header (CONV-41); otherwise the request is processed without it, unless the caller prefers
 * that `readInput` rejects it (`Prefer: handling=strict`, CONV-46). Runs before stored responses are replayed, since they
 * name it too (CONV-43).
 */
export function reportUnknownInput(server: FastifyInstance): void {
  server.addHook('preValidation', (request, reply, done) => {
    const inputTypes = getInputTypes(request);
    if (!inputTypes) return done();
    const isRefused = isStrict(request);
    if (isRefused) reply.header('preference-applied', 'handling=strict');
    const unknown = findUnknownInput(inputTypes, request);
    if (unknown) {
      if (isRefused) (request as CheckedRequest).refused = unknown;
      reply.header('x-unknown-parameters', renderNames(unknown));
    }
    done();
  });
}

/**
 * Tells whether strict handling is preferred (RFC 7240). The first preference of a name counts; names and values
 * ignore case.
 */
function isStrict({ headers }: FastifyRequest): boolean {
  const { prefer } = headers;
  if (prefer === undefined) return false;
  const preferences = [prefer]
    .flat()
    .join(',')
    // A quoted value may hold what separates preferences.
    .replaceAll(/"([^"]*)"/g, (_, quoted: string) => quoted.replaceAll(/[,;=]/g, ''))
    .toLowerCase()
    .split(',')
    .map((preference) => (preference.split(';', 1)[0] ?? '').split('='));
  const [, handling] = preferences.find(([name]) => name?.trim() === 'handling') ?? [];
  return handling?.trim() === 'strict';
}
