import type { FastifyInstance, FastifyRequest } from 'fastify';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { CompressedBodyError } from '#kernel/errors.js';

const METHODS = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);
const BODY_HEADERS = [
  'content-type',
  'content-encoding',
  'content-length',
  'transfer-encoding',
] as const;
/** Names of no coding at all: the body is as it was written. */
const IDENTITY_CODINGS = new Set(['', 'identity']);

/**
 * Decides what holds for every body before its media type matters. An empty body is none, whatever its headers say: HTTP
 * libraries add a type to every POST, and some send no length but an empty chunk. A compressed body is refused (RFC 9110,
 * section 15.5.16), because a small one could expand to any size.
 */
export function installBodyChecks(server: FastifyInstance): void {
  server.addHook('preParsing', (request, reply, body, done) => {
    isEmpty(request, body).then((empty) => {
      if (empty) {
        for (const name of BODY_HEADERS) delete request.headers[name];
      } else if (isCompressed(request)) {
        // RFC 9110, section 12.5.3: it tells clients that not the media type was refused.
        reply.header('accept-encoding', 'identity');
        return done(new CompressedBodyError('The body is compressed'));
      }
      done();
    }, done);
  });
}

/** Whether there is a body that is read; of one in chunks `judgeBodies` finds out. */
export function hasBody({ method, headers }: FastifyRequest): boolean {
  if (!METHODS.has(method)) return false;
  const { 'content-length': length, 'transfer-encoding': coding } = headers;
  return coding !== undefined || (length !== undefined && Number(length) > 0);
}

/** Whether there is no body. Of one in chunks the first byte is awaited, and stays in the stream. */
async function isEmpty(request: FastifyRequest, body: Readable): Promise<boolean> {
  if (!hasBody(request)) return true;
  if (request.headers['transfer-encoding'] === undefined) return false;
  await waitForBody(body);
  return body.readableLength === 0;
}

/** One that has ended already, without a byte, is never `readable`. */
async function waitForBody(body: Readable): Promise<void> {
  const done = new AbortController();
  const { signal } = done;
  try {
    await Promise.race([once(body, 'readable', { signal }), once(body, 'end', { signal })]);
  } finally {
    done.abort();
  }
}

/** By either header: as content coding, or as transfer coding beside `chunked` (RFC 9112, section 7). */
function isCompressed({ headers }: FastifyRequest): boolean {
  const codings = [headers['content-encoding'], headers['transfer-encoding']]
    .flatMap((value) => (value ?? '').split(','))
    .map((coding) => coding.trim().toLowerCase());
  return codings.some((coding) => !IDENTITY_CODINGS.has(coding) && coding !== 'chunked');
}
