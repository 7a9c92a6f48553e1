import {
  errorCodes,
  type FastifyInstance,
  type FastifyRequest,
  type onSendHookHandler,
  type preParsingHookHandler,
} from 'fastify';
import type { Readable } from 'node:stream';
import { UnavailableError } from '#kernel/errors.js';
import { API_BODY_LIMIT } from './body-limit.js';
import type { AuthenticatedRequest } from './caller.js';
import { hasBody } from './request-bodies.js';
import { UploadRoom } from './upload-room.js';

/** Time after which an upload may fit. The advice of clients that repeat a POST twice within seconds would waste it. */
const RETRY_AFTER_SECONDS = 5;

type Reservation = { bytes: number; release: () => void };

const reservations = new WeakMap<FastifyRequest, Reservation>();

/**
 * Reserves memory for bodies that may be larger than any JSON, before a byte of them is buffered (UPLOAD-01 to
 * UPLOAD-06, ADR-0132). Runs after all guards, so that strangers reserve nothing.
 */
export function reserveLargeBodies(server: FastifyInstance): void {
  const room = new UploadRoom();
  const reserve: preParsingHookHandler = (request, reply, _body, done) => {
    const { bodyLimit } = request.routeOptions;
    if (!hasBody(request)) return done();
    const bytes = Number(request.headers['content-length'] ?? bodyLimit);
    if (bytes > bodyLimit) return done(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE());
    // Its end is past when the client goes while the guards wait: nothing would release what is reserved now.
    if (reply.raw.closed || reply.raw.destroyed) return done(createClosedError());
    const release = room.reserve((request as AuthenticatedRequest).accountId, bytes);
    if (typeof release === 'string') {
      return done(new UnavailableError(release, { retryAfterSeconds: RETRY_AFTER_SECONDS }));
    }
    reservations.set(request, { bytes, release });
    // A handler goes on with the whole body when its client has gone: `onSend` then tells that it is done.
    reply.raw.once('close', () => {
      if (!request.raw.complete || reply.sent) release();
    });
    done();
  };
  const release: onSendHookHandler = (request, _reply, payload, done) => {
    reservations.get(request)?.release();
    done(null, payload);
  };
  server.addHook('onRoute', (route) => {
    if ((route.bodyLimit ?? 0) <= API_BODY_LIMIT) return;
    route.preParsing = [route.preParsing ?? []].flat().concat(reserve);
    route.onSend = [route.onSend ?? []].flat().concat(release);
  });
}

/**
 * Reads a body into the memory that is reserved for it. Joining its parts at the end would take twice as much. Of a body
 * that is too long the rest is discarded as it arrives, so that the client sees the 413.
 */
export function readLargeBody(request: FastifyRequest, body: Readable): Promise<Buffer> {
  const reservation = reservations.get(request);
  if (!reservation) throw new Error('no memory is reserved for this body');
  if (body.destroyed) throw createClosedError();
  const buffer = Buffer.allocUnsafeSlow(reservation.bytes);
  let length = 0;
  return new Promise((resolve, reject) => {
    body.on('data', (chunk: Buffer) => {
      if (length + chunk.length > buffer.length) {
        body.removeAllListeners('data').resume();
        reject(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE());
        return;
      }
      length += chunk.copy(buffer, length);
    });
    body.once('end', () => resolve(buffer.subarray(0, length)));
    body.once('error', reject);
    body.once('close', () => reject(createClosedError()));
  });
}

function createClosedError(): UnavailableError {
  return new UnavailableError('The connection was closed');
}
