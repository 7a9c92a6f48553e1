import {
  errorCodes,
  type FastifyInstance,
  type FastifyRequest,
  type onSendHookHandler,
  type preParsingHookHandler,
} from 'fastify';
import type { Readable } from 'node:stream';
import { CatalogueError, UnavailableError } from '#platform/kernel/errors.js';
import type { AuthenticatedRequest } from './caller.js';
import type { OpenRequest } from './open-requests.js';
import { API_BODY_LIMIT, hasBody } from './request-bodies.js';
import { PACE_WINDOW_MS, UploadPace } from './upload-pace.js';

const MAX_UPLOADS_PER_ACCOUNT = 2;
const MAX_UPLOADED_BYTES = 80 * 1024 * 1024;
/** Half of the room: an owner, with the two largest files, leaves as much for others. */
const MAX_BYTES_PER_OWNER = MAX_UPLOADED_BYTES / 2;

const CHECK_PACE_MS = 500;
const PACE_ERRORS = {
  stalled: `Nothing of the upload has arrived for ${PACE_WINDOW_MS / 1000} seconds`,
  slow: 'The upload arrives too slowly',
};

/** Time after which an upload may fit. The advice of clients that repeat a POST twice within seconds would waste it. */
const RETRY_AFTER_SECONDS = 5;

/** @property giveUp closes the connection after the response: the rest of the body is not read */
type Reservation = { bytes: number; release: () => void; giveUp: () => void };

const reservations = new WeakMap<FastifyRequest, Reservation>();

/**
 * Reserves memory for bodies that may be larger than any JSON, before a byte of them is buffered (UPLOAD-01 to
 * UPLOAD-06, ADR-0134). Runs after all guards, so that strangers reserve nothing, but for forms whose session has ended:
 * these share the two uploads of one account.
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
    const { accountId, wait } = request as AuthenticatedRequest & OpenRequest;
    const release = room.reserve(accountId, bytes, wait?.owner);
    if (typeof release === 'string') {
      return done(new UnavailableError(release, { retryAfterSeconds: RETRY_AFTER_SECONDS }));
    }
    const giveUp = () => void reply.header('connection', 'close');
    reservations.set(request, { bytes, release, giveUp });
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
 * that is too long the rest is discarded as it arrives, so that the client sees the 413. One that does not move gives its
 * room back (UPLOAD-07).
 */
export function readLargeBody(request: FastifyRequest, body: Readable): Promise<Buffer> {
  const reservation = reservations.get(request);
  if (!reservation) throw new Error('no memory is reserved for this body');
  if (body.destroyed) throw createClosedError();
  const buffer = Buffer.allocUnsafeSlow(reservation.bytes);
  let length = 0;
  const pace = new UploadPace(reservation.bytes, performance.now());
  let timer: NodeJS.Timeout | undefined;
  const read = new Promise<Buffer>((resolve, reject) => {
    timer = setInterval(() => {
      // After what has arrived while the process was busy.
      setImmediate(() => {
        const verdict = pace.judge(performance.now(), length);
        if (!verdict) return;
        body.removeAllListeners('data').resume();
        reservation.giveUp();
        reject(new CatalogueError('request_timeout', PACE_ERRORS[verdict]));
      });
    }, CHECK_PACE_MS);
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
  return read.finally(() => clearInterval(timer));
}

function createClosedError(): UnavailableError {
  return new UnavailableError('The connection was closed');
}

/** Counts the uploads of each account, and the bytes of each owner and of all. */
export class UploadRoom {
  private bytes = 0;
  private readonly counts = new Map<number | undefined, number>();
  private readonly bytesOfOwners = new Map<string | number | undefined, number>();

  /**
   * Reserves room for an upload.
   * @param bytes its length, or the maximum while that is unknown
   * @param owner who may have other accounts as well
   * @returns a function that releases the room, once; or a sentence that says why there is none
   */
  reserve(
    accountId: number | undefined,
    bytes: number,
    owner: string | number | undefined = accountId,
  ): (() => void) | string {
    const count = this.counts.get(accountId) ?? 0;
    if (count >= MAX_UPLOADS_PER_ACCOUNT) {
      return `${MAX_UPLOADS_PER_ACCOUNT} uploads of this account are still under way`;
    }
    if (this.bytes + bytes > MAX_UPLOADED_BYTES) return 'Too many files are being uploaded at once';
    const ofOwner = this.bytesOfOwners.get(owner) ?? 0;
    if (ofOwner + bytes > MAX_BYTES_PER_OWNER)
      return 'Too many of your files are being uploaded at once';
    this.bytes += bytes;
    this.counts.set(accountId, count + 1);
    this.bytesOfOwners.set(owner, ofOwner + bytes);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.bytes -= bytes;
      const others = (this.counts.get(accountId) ?? 0) - 1;
      if (others > 0) this.counts.set(accountId, others);
      else this.counts.delete(accountId);
      const left = (this.bytesOfOwners.get(owner) ?? 0) - bytes;
      if (left > 0) this.bytesOfOwners.set(owner, left);
      else this.bytesOfOwners.delete(owner);
    };
  }
}
