import { errorCodes, type FastifyInstance, type FastifyRequest } from 'fastify';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { CatalogueError } from '#platform/kernel/errors.js';
import { getBodyKind, ignoresOtherBodies, isExpectedBody } from './body-kinds.js';
import { isAdminRoute, isApiRoute } from './path.js';
import { getRouteAccess } from './route-access.js';

/** Maximum body of an anonymous request, which is parsed before the sender is known. */
export const ANONYMOUS_BODY_LIMIT = 16 * 1024;
/** Maximum body in the API, which reads none without a valid token. */
export const API_BODY_LIMIT = 1024 * 1024;

const METHODS = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);
const BODY_HEADERS = [
  'content-type',
  'content-encoding',
  'content-length',
  'transfer-encoding',
] as const;
const UNCOMPRESSED = {
  resolution:
    'Send the body as it is, without Content-Encoding and any Transfer-Encoding but chunked.',
};
/** Codings that leave the body unchanged. */
const IDENTITY_CODINGS = new Set(['', 'identity']);

/**
 * Sets the body limits of routes. Call it before routes are added: Nest passes on the config of a route, and Fastify
 * reads the limit from the route.
 */
export function installBodyLimits(server: FastifyInstance): void {
  server.addHook('onRoute', (route) => {
    const { bodyLimit } = (route.config ?? {}) as { bodyLimit?: number };
    if (bodyLimit !== undefined) route.bodyLimit = bodyLimit;
    else if (isApiRoute(route.url) || isAdminRoute(route.url)) route.bodyLimit = API_BODY_LIMIT;
  });
}

/**
 * Checks every body before its media type matters. An empty body is none, whatever its headers say (CONV-11): HTTP
 * libraries add a type to every POST, and some send an empty chunk instead of a length. A compressed body is refused
 * (CONV-55; RFC 9110, section 15.5.16), because a small one could expand to any size. A form, picture or file on a
 * route that does not take it is 415, as is anything else on one that does, unless it ignores that.
 */
export function installBodyChecks(server: FastifyInstance): void {
  server.addHook('preParsing', (request, reply, body, done) => {
    if (getRouteAccess(request).takesJson && hasPlainJson(request)) return done();
    const check = (isEmpty: boolean) => {
      if (isEmpty || isIgnored(request)) {
        for (const name of BODY_HEADERS) delete request.headers[name];
        // A form without fields may come without a body.
        if (getBodyKind(request) === 'form') request.body = {};
      } else if (isCompressed(request)) {
        // RFC 9110, section 12.5.3: it tells clients that not the media type was refused.
        reply.header('accept-encoding', 'identity');
        return done(
          new CatalogueError('unsupported_media_type', 'The body is compressed', UNCOMPRESSED),
        );
      } else if (!isExpectedBody(request)) {
        const type = request.headers['content-type'] ?? 'none';
        return done(new errorCodes.FST_ERR_CTP_INVALID_MEDIA_TYPE(type));
      }
      done();
    };
    if (!hasBody(request)) return check(true);
    // A length says it at once; of a chunked body the first byte, which stays in the stream.
    if (request.headers['transfer-encoding'] === undefined) return check(false);
    waitForBody(body).then(() => check(body.readableLength === 0), done);
  });
}

/** Tells whether the headers announce a body of JSON as it is, as those of nearly all requests do. */
function hasPlainJson({ method, headers }: FastifyRequest): boolean {
  return (
    METHODS.has(method) &&
    Number(headers['content-length']) > 0 &&
    headers['content-type']?.startsWith('application/json') === true &&
    headers['content-encoding'] === undefined &&
    headers['transfer-encoding'] === undefined
  );
}

/** Tells whether the body counts as none, because the route needs none and cannot read this one. */
function isIgnored(request: FastifyRequest): boolean {
  if (!ignoresOtherBodies(request)) return false;
  const { headers, routeOptions } = request;
  const isTooLong = Number(headers['content-length'] ?? 0) > routeOptions.bodyLimit;
  return isTooLong || isCompressed(request) || !isExpectedBody(request);
}

/** Tells whether there is a body; `installBodyChecks` finds out for a chunked one. */
export function hasBody({ method, headers }: FastifyRequest): boolean {
  if (!METHODS.has(method)) return false;
  const { 'content-length': length, 'transfer-encoding': coding } = headers;
  return coding !== undefined || (length !== undefined && Number(length) > 0);
}

/** Waits until the body has a byte, ends or breaks off. One that has ended already is never `readable`. */
async function waitForBody(body: Readable): Promise<void> {
  if (body.destroyed) return;
  const done = new AbortController();
  const { signal } = done;
  try {
    await Promise.race(['readable', 'end', 'close'].map((event) => once(body, event, { signal })));
  } finally {
    done.abort();
  }
}

/**
 * Tells whether either header names a compression: as content coding, or as transfer coding next to `chunked` (RFC
 * 9112, section 7).
 */
function isCompressed({ headers }: FastifyRequest): boolean {
  if (!headers['content-encoding'] && !headers['transfer-encoding']) return false;
  const codings = [headers['content-encoding'], headers['transfer-encoding']]
    .flatMap((value) => (value ?? '').split(','))
    .map((coding) => coding.trim().toLowerCase());
  return codings.some((coding) => !IDENTITY_CODINGS.has(coding) && coding !== 'chunked');
}
