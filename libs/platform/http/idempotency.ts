import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import type {
  FastifyInstance,
  FastifyReply,
  onSendHookHandler,
  preHandlerHookHandler,
} from 'fastify';
import { ERRORS } from '#platform/kernel/error-catalogue.js';
import { PlatformConfig } from '#platform/kernel/platform-config.js';
import {
  InProgressError,
  InvalidFieldsError,
  getErrorMessage,
  getMessageWithCause,
  RejectedError,
  UnavailableError,
} from '#platform/kernel/errors.js';
import { pause } from '#platform/kernel/pause.js';
import { createId } from '#platform/kernel/randomness.js';
import { KeyTakenOverError } from '#platform/event-store/port/event-store.js';
import { StoredResponses } from '#platform/event-store/commands/stored-responses.js';
import type { AuthenticatedRequest } from './caller.js';
import { renderErrorResponse, renderFailure, StoredRejection } from './errors.filter.js';
import { HttpMetrics } from './http-metrics.js';
import { isAdminRoute, isApiRoute } from './path.js';
import { PLATFORM_ISSUES } from '#platform/kernel/issues.js';

const WRITE_METHODS = new Set(['POST', 'PATCH', 'PUT', 'DELETE']);
const PRUNE_INTERVAL_MS = 10 * 60_000;

/** Tells which person a request is about: a stored response is erased with its person. */
export type RequestSubjects = {
  /** Finds the person whom the path names, if it names one. */
  find: (params: object, route: string) => number | undefined;
  /** Creates the rejection of a repeated request whose response was erased. */
  createErasedError: () => RejectedError;
};

/** @property caller whose keys are apart from those of all others */
type KeyUse = { caller: string | number; header: string | string[]; subjects: RequestSubjects };

/**
 * Implements the optional header Idempotency-Key (RETRY-01 to RETRY-26): a repeated request gets the same response. A
 * commit saves its response itself; here the key is claimed before the handler runs. The response of a request that
 * committed nothing is stored, or its key released, before the response is sent.
 */
@Injectable()
export class Idempotency implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger('idempotency');
  private readonly stopping = new AbortController();

  constructor(
    private readonly responses: StoredResponses,
    private readonly metrics: HttpMetrics,
    private readonly config: PlatformConfig,
  ) {}

  onModuleInit(): void {
    void this.pruneRegularly();
  }

  onModuleDestroy(): void {
    this.stopping.abort();
  }

  /** Adds hooks to the routes that take a key, and no interceptor: a request without the header costs nothing. */
  install(server: FastifyInstance, subjects: RequestSubjects): void {
    const claim: preHandlerHookHandler = (plain, reply, done) => {
      const request = plain as AuthenticatedRequest;
      const header = request.headers['idempotency-key'];
      const caller = header === undefined ? undefined : identifyCaller(request);
      if (header === undefined || caller === undefined) return done();
      this.begin(request, reply, { caller, header, subjects }).then((replayed) => {
        if (!replayed) done();
      }, done);
    };
    const save: onSendHookHandler = (plain, reply, payload, done) => {
      const request = plain as AuthenticatedRequest;
      if (!request.keyed || request.keyed.isStored) return done(null, payload);
      this.saveOrRelease(request, reply, payload).then(
        () => done(null, payload),
        (error: unknown) => done(null, renderFailure(error, request, reply, this.config.publicUrl)),
      );
    };
    server.addHook('onRoute', (route) => {
      const isForPrograms = isApiRoute(route.url) || isAdminRoute(route.url);
      if (!isForPrograms || ![route.method].flat().some((name) => WRITE_METHODS.has(name))) return;
      route.preHandler = [route.preHandler ?? []].flat().concat(claim);
      route.onSend = [route.onSend ?? []].flat().concat(save);
    });
  }

  /**
   * Claims the key, or replays the stored response.
   * @returns whether a response was replayed
   */
  private async begin(
    request: AuthenticatedRequest,
    reply: FastifyReply,
    { caller, header, subjects }: KeyUse,
  ): Promise<boolean> {
    const keyed = {
      key: this.responses.fingerprint(caller, request.method, request.url, parseKey(header)),
      holder: createId(),
      isStored: false,
      subjectId: subjects.find(request.params as object, request.routeOptions.url ?? ''),
      // The status of its success: Nest sets it before it calls the handler.
      get status() {
        return reply.statusCode;
      },
    };
    request.idempotencyKey = keyed.key;
    const body = this.responses.fingerprint(renderBody(request.body));
    const reservation = await this.responses.claimKey(keyed, body);
    if (reservation.state === 'running') throw new InProgressError();
    if (reservation.state === 'other') throw createKeyReusedError();
    if (reservation.state === 'ours') {
      request.keyed = keyed;
      return false;
    }
    reply.header('idempotent-replayed', 'true');
    this.metrics.countReplay();
    if (reservation.state === 'erased') throw subjects.createErasedError();
    if (reservation.status >= 400) throw new StoredRejection(reservation);
    void reply.status(reservation.status).send(reservation.body);
    return true;
  }

  /**
   * Saves the response of a request that committed nothing, or releases its key.
   * @throws UnavailableError when a rejection could not be stored: another response to the same request would differ
   * @throws KeyTakenOverError when another request owns the key now
   */
  private async saveOrRelease(
    request: AuthenticatedRequest,
    reply: FastifyReply,
    payload: unknown,
  ): Promise<void> {
    const { keyed, failure } = request;
    // Another request has taken over the key and the response stored under it.
    if (!keyed || failure instanceof KeyTakenOverError) return;
    const isRejection =
      failure instanceof RejectedError && !(failure instanceof InvalidFieldsError);
    try {
      if (isRejection) {
        const rejection = renderErrorResponse(failure, request.requestId, this.config.publicUrl);
        await this.responses.save(keyed, rejection);
      } else if (failure === undefined && !keyed.releasesKey) {
        const body: unknown = typeof payload === 'string' ? JSON.parse(payload) : undefined;
        await this.responses.save(keyed, { status: reply.statusCode, body });
      } else await this.responses.release(keyed);
    } catch (error) {
      this.log.warn(
        `the response under an Idempotency-Key could not be stored: ${getMessageWithCause(error)}`,
        { request_id: request.requestId },
      );
      if (!isRejection) return;
      if (error instanceof KeyTakenOverError) throw error;
      await this.responses.release(keyed);
      throw new UnavailableError('The response could not be stored', { cause: error });
    }
  }

  private async pruneRegularly(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      try {
        while (!signal.aborted && (await this.responses.prune())) continue;
      } catch (error) {
        this.log.warn(`expired responses will be deleted later: ${getErrorMessage(error)}`);
      }
      await pause(PRUNE_INTERVAL_MS, signal);
    }
  }
}

/** Identifies the token; those of the admin API have ids of their own. */
function identifyCaller({
  caller,
  adminCaller,
}: AuthenticatedRequest): string | number | undefined {
  return caller?.tokenId ?? (adminCaller && `admin ${adminCaller.tokenId}`);
}

/**
 * Parses the header (RETRY-07, RETRY-08).
 * @throws InvalidFieldsError unless it is 1 to 255 printable ASCII characters
 */
function parseKey(header: string | string[]): string {
  const text = [header].flat().join(', ');
  const key = /^"(.*)"$/s.exec(text)?.[1] ?? text;
  if (/^[\x20-\x7e]{1,255}$/.test(key)) return key;
  throw new InvalidFieldsError({
    idempotency_key: [PLATFORM_ISSUES.invalid_idempotency_key],
  });
}

/** Renders a body for comparison; a picture is compared byte by byte. */
function renderBody(body: unknown): string {
  return Buffer.isBuffer(body) ? body.toString('base64') : renderCanonicalJson(body);
}

/**
 * Renders equal JSON values as equal texts (RETRY-04). Not RFC 8785, which has no text for a lone surrogate nor for
 * 1e400: whether those are valid is up to the fields.
 * @throws InvalidFieldsError when it is nested too deeply
 */
function renderCanonicalJson(body: unknown): string {
  try {
    return JSON.stringify(body, (_, value: unknown) => sortKeys(value)) ?? '';
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new InvalidFieldsError({ base: [PLATFORM_ISSUES.body_nested_too_deeply] });
  }
}

function sortKeys(value: unknown): unknown {
  // JSON would have null for it, which is another value.
  if (typeof value === 'number' && !Number.isFinite(value)) return [String(value)];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function createKeyReusedError(): RejectedError {
  return new RejectedError(
    { idempotency_key: [PLATFORM_ISSUES.idempotency_key_reused] },
    'idempotency_key_reused',
    ERRORS.idempotency_key_reused.advice,
  );
}
