import {
  Catch,
  HttpException,
  Logger,
  type ArgumentsHost,
  type ExceptionFilter,
} from '@nestjs/common';
import { STATUS_CODES } from 'node:http';
import type { FastifyReply } from 'fastify';
import Negotiator from 'negotiator';
import type { PlatformConfig } from '#kernel/platform-config.js';
import {
  CompressedBodyError,
  ForbiddenError,
  InProgressError,
  InvalidFieldsError,
  InvalidHostError,
  MethodNotAllowedError,
  NotFoundError,
  RateLimitedError,
  RejectedError,
  TakenError,
  UnauthorizedError,
  UnavailableError,
  getErrorMessage,
  getMessageWithCause,
  UnknownOutcomeError,
} from '#kernel/errors.js';
import { isConnectionLoss, isOutage, isPassing } from '#database/connection.js';
import { isFailureToConnect } from '#database/database-client.js';
import type { StoredResponse } from '#event-store/commands/stored-responses.js';
import { KeyTakenOverError } from '#event-store/port/event-store.js';
import type { GatedRequest } from './caller.js';
import { answerOf, errorJson, type Answer, type ErrorJson } from './error-answer.js';
import { ERROR_PAGE } from './error.dto.js';
import { vary } from './headers.js';
import { pathOf } from './path.js';
import { VersionSunsetError } from './versioning.js';

const JSON_TYPE = 'application/json';
const PROBLEM_TYPE = 'application/problem+json';

/** Faults that Fastify finds before a route runs. */
const REFUSED_EARLY: Record<string, Answer> = {
  FST_ERR_CTP_INVALID_JSON_BODY: answerOf('malformed_json'),
  FST_ERR_CTP_BODY_TOO_LARGE: answerOf('payload_too_large'),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: answerOf('unsupported_media_type'),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: answerOf('malformed_json', {
    error: 'The body is not as long as Content-Length says',
  }),
  FST_ERR_BAD_URL: answerOf('not_found'),
  FST_ERR_MAX_PARAM_LENGTH: answerOf('not_found'),
};

const COMPRESSED = answerOf('unsupported_media_type', {
  error: 'The body is compressed',
  resolution:
    'Send the body as it is, without Content-Encoding and any Transfer-Encoding but chunked.',
});
const CUT_OFF = answerOf('malformed_request', {
  error: 'The request ended before all of it had arrived',
});

/** A refusal that was stored under an Idempotency-Key. */
export class StoredRefusal extends Error {
  constructor(readonly answer: StoredResponse) {
    super('refused as before');
  }
}

/** Words failures for people in front of a browser; implemented by the pages. */
export type ErrorPages = {
  /** Whether the request is for a page. */
  takes: (request: GatedRequest) => boolean;
  /** An error that was thrown to be shown, and is no bug. */
  isExpected: (error: unknown) => boolean;
  send: (error: unknown, answer: Answer, request: GatedRequest, reply: FastifyReply) => void;
};

/** The one place where a failure becomes an answer: the contract's error payload (sections 1 and 2.4). */
@Catch()
export class ErrorsFilter implements ExceptionFilter {
  private readonly log = new Logger('Errors');

  constructor(
    private readonly config: PlatformConfig,
    private readonly pages: ErrorPages,
    /** Rejects when the record of the request's path is not there, which is reported before faults in its fields. */
    private readonly requireRecord: (request: GatedRequest) => Promise<void>,
  ) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<GatedRequest>();
    const answer = (fault: unknown) =>
      this.answer(fault, request, http.getResponse<FastifyReply>());
    if (!(thrown instanceof InvalidFieldsError)) answer(thrown);
    else this.requireRecord(request).then(() => answer(thrown), answer);
  }

  answer(error: unknown, request: GatedRequest, reply: FastifyReply): void {
    request.failure = error;
    // The client hung up while sending its request: neither our fault nor the database's.
    if (request.raw.destroyed && !request.raw.complete) {
      const body = errorJson(CUT_OFF, request.requestId, this.config.publicUrl);
      send(CUT_OFF.status, body, request, reply, this.config);
      return;
    }
    const isPage = this.pages.takes(request);
    // A connection lost during a plain write: it may have been committed.
    const unsettled =
      isConnectionLoss(error) &&
      !isFailureToConnect(error) &&
      !['GET', 'HEAD'].includes(request.method);
    if (!isPage && (error instanceof UnknownOutcomeError || unsettled)) {
      // No answer at all: a client would take any status to say whether the write happened.
      this.log.error(error.message, { request_id: request.requestId }, error.stack);
      reply.hijack();
      request.raw.socket.destroy();
      return;
    }
    if (error instanceof StoredRefusal) {
      send(error.answer.status, error.answer.body as ErrorJson, request, reply, this.config);
      return;
    }
    const answer = answerTo(error);
    const about = { request_id: request.requestId };
    if (answer.status === 503) this.log.warn(getMessageWithCause(error), about);
    if (answer.status === 500 && !(isPage && this.pages.isExpected(error))) {
      this.log.error(
        getMessageWithCause(error),
        about,
        error instanceof Error ? error.stack : undefined,
      );
    }
    sayWhenToRetry(answer, reply);
    if (isPage) {
      const known = unsettled
        ? new UnknownOutcomeError(getErrorMessage(error), { cause: error })
        : error;
      this.pages.send(known, answer, request, reply);
      return;
    }
    const body = errorJson(answer, request.requestId, this.config.publicUrl);
    send(answer.status, body, request, reply, this.config);
  }
}

/** The error response to keep under an Idempotency-Key. */
export function refusalOf(
  error: RejectedError,
  request: GatedRequest,
  publicUrl: string,
): StoredResponse {
  const answer = answerTo(error);
  return { status: answer.status, body: errorJson(answer, request.requestId, publicUrl) };
}

/** Sets status and headers of a response that is about to be sent. @returns the body to send instead of its own */
export function failed(
  error: unknown,
  request: GatedRequest,
  reply: FastifyReply,
  config: PlatformConfig,
): string {
  const answer = answerTo(error);
  sayWhenToRetry(answer, reply);
  const body = errorJson(answer, request.requestId, config.publicUrl);
  return JSON.stringify(negotiated(answer.status, body, request, reply, config));
}

function sayWhenToRetry({ retryAfterSeconds }: Answer, reply: FastifyReply): void {
  if (retryAfterSeconds !== undefined) reply.header('retry-after', retryAfterSeconds);
}

function send(
  status: number,
  body: ErrorJson,
  request: GatedRequest,
  reply: FastifyReply,
  config: PlatformConfig,
): void {
  void reply.send(negotiated(status, body, request, reply, config));
}

/** Negotiation only chooses the kind of JSON: a client that accepts neither gets JSON anyway. */
function negotiated(
  status: number,
  body: ErrorJson,
  request: GatedRequest,
  reply: FastifyReply,
  { publicUrl }: PlatformConfig,
): ErrorJson {
  const type = new Negotiator(request).mediaType([JSON_TYPE, PROBLEM_TYPE]) ?? JSON_TYPE;
  // The five members of RFC 9457.
  const problem = {
    type: `${publicUrl}${ERROR_PAGE}#${body.code}`,
    title: STATUS_CODES[status],
    status,
    detail: body.error,
    instance: pathOf(request.url),
  };
  vary(reply, 'Accept');
  void reply.status(status).type(`${type}; charset=utf-8`);
  return type === PROBLEM_TYPE ? { ...problem, ...body } : body;
}

function answerTo(error: unknown): Answer {
  if (error instanceof RejectedError) {
    const { message, code, errors, resolution } = error;
    const existing = error instanceof TakenError ? error.existing : undefined;
    return answerOf(code, {
      error: message,
      errors,
      ...(existing && { existing }),
      ...(resolution && { resolution }),
    });
  }
  if (error instanceof InProgressError || error instanceof KeyTakenOverError) {
    return answerOf('idempotency_in_progress');
  }
  if (error instanceof NotFoundError) return answerOf('not_found', { error: error.message });
  if (error instanceof UnauthorizedError) return answerOf('unauthorized');
  if (error instanceof ForbiddenError) return answerOf('forbidden');
  if (error instanceof RateLimitedError) {
    const { retryAfterSeconds } = error;
    return answerOf('rate_limited', { retryAfterSeconds }, { seconds: retryAfterSeconds });
  }
  if (error instanceof VersionSunsetError) {
    return answerOf('version_sunset', { versioning: error.versioning });
  }
  if (error instanceof MethodNotAllowedError) {
    const values = { allowed: error.allowed.join(', ') };
    return answerOf('method_not_allowed', { error: error.message }, values);
  }
  if (error instanceof CompressedBodyError) return COMPRESSED;
  if (error instanceof InvalidHostError) {
    return answerOf('malformed_request', {
      error: error.message,
      resolution: 'Send the header Host once: the name or address of the service, and its port.',
    });
  }
  if (error instanceof UnavailableError) return answerOf('unavailable', { error: error.message });
  if (isOutage(error)) return answerOf('unavailable', { error: 'The database cannot do this now' });
  if (isPassing(error)) return answerOf('unavailable');
  const early = refusedEarly(error) ?? (error instanceof Error && refusedEarly(error.cause));
  if (early) return early;
  if (error instanceof HttpException && error.getStatus() === 404) return answerOf('not_found');
  return answerOf('internal');
}

/** Nest wraps what Fastify throws. */
function refusedEarly(error: unknown): Answer | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return REFUSED_EARLY[String(error.code)];
}
