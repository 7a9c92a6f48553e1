import {
  Catch,
  HttpException,
  Logger,
  type ArgumentsHost,
  type ExceptionFilter,
} from '@nestjs/common';
import { STATUS_CODES } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import { toFieldCodes } from '#platform/kernel/issues.js';
import type { PlatformConfig } from '#platform/kernel/platform-config.js';
import {
  CatalogueError,
  CursorAheadError,
  InvalidFieldsError,
  MaintenanceError,
  RejectedError,
  TakenError,
  getErrorMessage,
  getMessageWithCause,
  UnknownOutcomeError,
} from '#platform/kernel/errors.js';
import { isConnectionLoss, isOutage, isTransient } from '#platform/database/connection.js';
import { isFailureToConnect } from '#platform/database/database-client.js';
import type { StoredResponse } from '#platform/event-store/commands/stored-responses.js';
import type { AuthenticatedRequest } from './caller.js';
import {
  createErrorResponse,
  toErrorJson,
  type ErrorResponse,
  type ErrorJson,
} from './error-response.js';
import { negotiateMediaType } from './negotiation.js';
import { getPath } from './path.js';

const JSON_TYPE = 'application/json';
const PROBLEM_TYPE = 'application/problem+json';

const log = new Logger('Errors');

/** What errors mean that Fastify finds before a route runs. */
const EARLY_ERRORS: Record<string, CatalogueError> = {
  FST_ERR_CTP_INVALID_JSON_BODY: new CatalogueError('malformed_json'),
  FST_ERR_CTP_BODY_TOO_LARGE: new CatalogueError('payload_too_large'),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: new CatalogueError('unsupported_media_type'),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: new CatalogueError(
    'malformed_json',
    'The body is not as long as Content-Length says',
  ),
  FST_ERR_BAD_URL: new CatalogueError('not_found'),
  FST_ERR_MAX_PARAM_LENGTH: new CatalogueError('not_found'),
};

const CUT_OFF = createErrorResponse(
  new CatalogueError('malformed_request', 'The request ended before all of it had arrived'),
);

/** Replays a rejection that is stored under an Idempotency-Key. */
export class StoredRejection extends Error {
  constructor(readonly response: StoredResponse) {
    super('refused as before');
  }
}

/** Renders errors as pages for browsers; implemented by the pages. */
export type ErrorPages = {
  /** Tells whether the request is for a page. */
  handles: (request: AuthenticatedRequest, reply: FastifyReply) => boolean;
  /** Tells whether an error is meant to be shown, and is no bug. */
  isExpected: (error: unknown) => boolean;
  send: (
    error: unknown,
    response: ErrorResponse,
    request: AuthenticatedRequest,
    reply: FastifyReply,
  ) => void;
};

/** Turns every error into a response, in one place (ERR-01 to ERR-07, ADR-0009). */
@Catch()
export class ErrorsFilter implements ExceptionFilter {
  constructor(
    private readonly config: PlatformConfig,
    private readonly pages: ErrorPages,
    /** Rejects when the path's record does not exist, which is reported before field errors (CONV-38). */
    private readonly requireRecord: (request: AuthenticatedRequest) => Promise<void>,
  ) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<AuthenticatedRequest>();
    const respond = (error: unknown) =>
      this.respond(error, request, http.getResponse<FastifyReply>());
    if (!(thrown instanceof InvalidFieldsError)) respond(thrown);
    else this.requireRecord(request).then(() => respond(thrown), respond);
  }

  respond(error: unknown, request: AuthenticatedRequest, reply: FastifyReply): void {
    request.failure = error;
    // The client disconnected while sending its request: neither our fault nor the database's.
    if (request.raw.destroyed && !request.raw.complete) {
      const body = toErrorJson(CUT_OFF, request.requestId, this.config.publicUrl);
      send(CUT_OFF.status, body, request, reply);
      return;
    }
    const isPage = this.pages.handles(request, reply);
    const isOutcomeUnknown = !['GET', 'HEAD'].includes(request.method) && mayBeCommitted(error);
    if (!isPage && (error instanceof UnknownOutcomeError || isOutcomeUnknown)) {
      // No response at all: any status would tell the client whether the write happened.
      log.warn(getMessageWithCause(error), { request_id: request.requestId });
      reply.hijack();
      // A request from within the process has no connection; its caller sees the response end.
      if (request.raw.socket instanceof Socket) request.raw.socket.destroy();
      else reply.raw.destroy();
      return;
    }
    if (error instanceof StoredRejection) {
      send(error.response.status, error.response.body as ErrorJson, request, reply);
      return;
    }
    const response = toErrorResponse(error);
    if (!(response.status === 500 && isPage && this.pages.isExpected(error))) {
      logFailure(error, response.status, request.requestId);
    }
    setRetryAfter(response, reply);
    // Read to its end, within the time that a request may take, and discarded. Fastify would close the connection, and a
    // client that is still sending would see the reset instead of the 413.
    if (response.status === 413) reply.removeHeader('connection');
    if (isPage) {
      const pageError = isOutcomeUnknown
        ? new UnknownOutcomeError(getErrorMessage(error), { cause: error })
        : error;
      this.pages.send(pageError, response, request, reply);
      return;
    }
    const body = toErrorJson(response, request.requestId, this.config.publicUrl);
    send(response.status, body, request, reply);
  }
}

/**
 * Renders the error of one of several operations in a request, which is logged like that of a whole request.
 * @throws the error when the operation may have been committed: any status would tell the client whether it was
 */
export function renderOperationError(
  error: unknown,
  requestId: string,
  publicUrl: string,
): StoredResponse {
  if (error instanceof UnknownOutcomeError || mayBeCommitted(error)) throw error;
  const response = renderErrorResponse(error, requestId, publicUrl);
  logFailure(error, response.status, requestId);
  return response;
}

/** Tells whether the connection was lost during a plain write, which may have been committed. */
function mayBeCommitted(error: unknown): error is Error {
  return isConnectionLoss(error) && !isFailureToConnect(error);
}

function logFailure(error: unknown, status: number, requestId: string): void {
  const about = { request_id: requestId };
  if (error instanceof MaintenanceError) return;
  if (status === 503) log.warn(getMessageWithCause(error), about);
  if (status !== 500) return;
  log.error(getMessageWithCause(error), about, error instanceof Error ? error.stack : undefined);
}

/** Renders the status and body of an error. */
export function renderErrorResponse(
  error: unknown,
  requestId: string,
  publicUrl: string,
): StoredResponse {
  const response = toErrorResponse(error);
  return { status: response.status, body: toErrorJson(response, requestId, publicUrl) };
}

/** Sets status and headers of a response that is about to be sent. @returns the body to send instead of its own */
export function renderFailure(
  error: unknown,
  request: AuthenticatedRequest,
  reply: FastifyReply,
  publicUrl: string,
): string {
  const response = toErrorResponse(error);
  setRetryAfter(response, reply);
  const body = toErrorJson(response, request.requestId, publicUrl);
  return JSON.stringify(negotiate(response.status, body, request, reply));
}

function setRetryAfter({ retryAfterSeconds }: ErrorResponse, reply: FastifyReply): void {
  if (retryAfterSeconds !== undefined) reply.header('retry-after', retryAfterSeconds);
}

function send(
  status: number,
  body: ErrorJson,
  request: AuthenticatedRequest,
  reply: FastifyReply,
): void {
  void reply.send(negotiate(status, body, request, reply));
}

/** Sets the headers and chooses the kind of JSON: a client that accepts neither gets plain JSON. */
function negotiate(
  status: number,
  body: ErrorJson,
  request: AuthenticatedRequest,
  reply: FastifyReply,
): ErrorJson {
  const type = negotiateMediaType(request, reply, [JSON_TYPE, PROBLEM_TYPE]) ?? JSON_TYPE;
  // The five members of RFC 9457.
  const problem = {
    type: body.documentation_url,
    title: STATUS_CODES[status],
    status,
    detail: body.error,
    instance: getPath(request.url),
  };
  void reply.status(status).type(`${type}; charset=utf-8`);
  return type === PROBLEM_TYPE ? { ...problem, ...body } : body;
}

function toErrorResponse(error: unknown): ErrorResponse {
  if (error instanceof RejectedError) {
    const { message, code, errors, issues, resolution } = error;
    const existing = error instanceof TakenError ? error.existing : undefined;
    return {
      status: 422,
      code,
      error: message,
      errors,
      errorCodes: toFieldCodes(issues),
      ...(existing && { existing }),
      ...(error instanceof CursorAheadError && { resumeAfter: error.resumeAfter }),
      ...(resolution && { resolution }),
    };
  }
  return createErrorResponse(toCatalogueError(error));
}

function toCatalogueError(error: unknown): CatalogueError {
  if (error instanceof CatalogueError) return error;
  if (isOutage(error)) return new CatalogueError('unavailable', 'The database cannot do this now');
  if (isTransient(error)) return new CatalogueError('unavailable');
  const early = findEarlyError(error) ?? (error instanceof Error && findEarlyError(error.cause));
  if (early) return early;
  const isNotFound = error instanceof HttpException && error.getStatus() === 404;
  return new CatalogueError(isNotFound ? 'not_found' : 'internal');
}

/** Finds what an error of Fastify means, which Nest may have wrapped. */
function findEarlyError(error: unknown): CatalogueError | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return EARLY_ERRORS[String(error.code)];
}
