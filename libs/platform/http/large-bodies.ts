import {
  errorCodes,
  type FastifyInstance,
  type FastifyRequest,
  type onSendHookHandler,
  type preParsingHookHandler,
} from 'fastify';
import type { Readable } from 'node:stream';
import { UnavailableError } from '#platform/kernel/errors.js';
import type { AuthenticatedRequest } from './caller.js';
import { API_BODY_LIMIT, hasBody } from './request-bodies.js';

/** So that one account, with its two largest files, leaves room for the file of another. */
const MAX_UPLOADS_PER_ACCOUNT = 2;
const MAX_UPLOADED_BYTES = 64 * 1024 * 1024;

/** Time after which an upload may fit. The advice of clients that repeat a POST twice within seconds would waste it. */
const RETRY_AFTER_SECONDS = 5;

type Reservation = { bytes: number; release: () => void };

const reservations = new WeakMap<FastifyRequest, Reservation>();

/**
 * Reserves memory for bodies that may be larger than any JSON, before a byte of them is buffered (UPLOAD-01 to
 * UPLOAD-06, ADR-0134). Runs after all guards, so that strangers reserve nothing.
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

/** Counts the uploads of each account, and the bytes of all. */
export class UploadRoom {
  private bytes = 0;
  private readonly counts = new Map<number | undefined, number>();

  /**
   * Reserves room for an upload.
   * @param bytes its length, or the maximum while that is unknown
   * @returns a function that releases the room, once; or a sentence that says why there is none
   */
  reserve(accountId: number | undefined, bytes: number): (() => void) | string {
    const count = this.counts.get(accountId) ?? 0;
    if (count >= MAX_UPLOADS_PER_ACCOUNT) {
      return `${MAX_UPLOADS_PER_ACCOUNT} uploads of this account are still under way`;
    }
    if (this.bytes + bytes > MAX_UPLOADED_BYTES) return 'Too many files are being uploaded at once';
    this.bytes += bytes;
    this.counts.set(accountId, count + 1);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.bytes -= bytes;
      const others = (this.counts.get(accountId) ?? 0) - 1;
      if (others > 0) this.counts.set(accountId, others);
      else this.counts.delete(accountId);
    };
  }
}
