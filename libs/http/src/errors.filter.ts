import {
  Catch,
  HttpException,
  Logger,
  type ArgumentsHost,
  type ExceptionFilter,
} from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { Config } from '#kernel/config.js';
import {
  InProgressError,
  NotFoundError,
  RateLimitedError,
  RejectedError,
  UnauthorizedError,
  UnavailableError,
  UnknownOutcomeError,
  type FieldErrors,
} from '#kernel/errors.js';
import { isConnectionLoss } from '#database/connection.js';
import type { KeptAnswer } from '#event-store/outcomes.js';
import { TakenOverError } from '#event-store/event-store.js';
import type { GatedRequest } from './caller.js';

type Answer = {
  status: number;
  code: string;
  error: string;
  errors?: FieldErrors;
  resolution?: string;
  retryAfterSeconds?: number;
};

/** Faults that Fastify finds before a route runs. */
const REFUSED_EARLY: Record<string, Answer> = {
  FST_ERR_CTP_INVALID_JSON_BODY: {
    status: 400,
    code: 'malformed_json',
    error: 'The body is not valid JSON',
    resolution: 'Send one JSON object in UTF-8.',
  },
  FST_ERR_CTP_BODY_TOO_LARGE: {
    status: 413,
    code: 'payload_too_large',
    error: 'The body is larger than 1 MiB',
    resolution: 'Send less in one request.',
  },
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    status: 415,
    code: 'unsupported_media_type',
    error: 'The body must be JSON',
    resolution: 'Send the header Content-Type: application/json.',
  },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    status: 400,
    code: 'malformed_json',
    error: 'The body is not as long as Content-Length says',
  },
  FST_ERR_BAD_URL: { status: 404, code: 'not_found', error: 'This path does not exist' },
  FST_ERR_MAX_PARAM_LENGTH: { status: 404, code: 'not_found', error: 'This path does not exist' },
};

/** A refusal as it was answered the first time. */
export class KeptRefusal extends Error {
  constructor(readonly answer: KeptAnswer) {
    super('refused as before');
  }
}

/** The one place where a failure becomes an answer: the contract's error payload (sections 1 and 2.4). */
@Catch()
export class ErrorsFilter implements ExceptionFilter {
  private readonly log = new Logger('Errors');

  constructor(private readonly config: Config) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    this.answer(error, http.getRequest<GatedRequest>(), http.getResponse<FastifyReply>());
  }

  answer(error: unknown, request: GatedRequest, reply: FastifyReply): void {
    // A connection lost in the middle of a write of plain rows: nobody knows whether it was committed.
    const unsettled = isConnectionLoss(error) && !['GET', 'HEAD'].includes(request.method);
    if (error instanceof UnknownOutcomeError || unsettled) {
      // No answer at all: a client would take any status for a verdict on what was or was not written.
      this.log.error(`${request.requestId}: ${error.message}`, error.stack);
      reply.hijack();
      request.raw.socket.destroy();
      return;
    }
    if (error instanceof KeptRefusal) {
      void reply.status(error.answer.status).send(error.answer.body);
      return;
    }
    const answer = answerTo(error);
    if (answer.status === 503) this.log.warn(`${request.requestId}: ${describe(error)}`);
    if (answer.status === 500) {
      const stack = error instanceof Error ? error.stack : undefined;
      this.log.error(`${request.requestId}: ${stack ?? describe(error)}`);
    }
    if (answer.retryAfterSeconds !== undefined) {
      reply.header('retry-after', answer.retryAfterSeconds);
    }
    void reply.status(answer.status).send(bodyOf(answer, request, this.config.publicUrl));
  }
}

/** What a refused request is answered, as it is kept under an Idempotency-Key. */
export function refusalOf(
  error: RejectedError,
  request: GatedRequest,
  publicUrl: string,
): KeptAnswer {
  const answer = answerTo(error);
  return { status: answer.status, body: bodyOf(answer, request, publicUrl) };
}

function bodyOf(
  { code, error, errors, resolution }: Answer,
  { requestId }: GatedRequest,
  publicUrl: string,
): object {
  return {
    error,
    code,
    ...(errors && { errors }),
    ...(resolution !== undefined && { resolution }),
    documentation_url: `${publicUrl}/docs`,
    request_id: requestId,
  };
}

function answerTo(error: unknown): Answer {
  if (error instanceof RejectedError) {
    const { message, code, errors, resolution } = error;
    return { status: 422, code, error: message, errors, ...(resolution && { resolution }) };
  }
  if (error instanceof InProgressError || error instanceof TakenOverError) {
    return {
      status: 409,
      code: 'idempotency_in_progress',
      error: new InProgressError().message,
      resolution: 'Send the request again in a moment: it gets the answer of the first one.',
      retryAfterSeconds: 1,
    };
  }
  if (error instanceof NotFoundError) {
    return { status: 404, code: 'not_found', error: error.message };
  }
  if (error instanceof UnauthorizedError) {
    return {
      status: 401,
      code: 'unauthorized',
      error: error.message,
      resolution:
        'Send the header Authorization: Bearer <API_TOKEN> with a token that is in force.',
    };
  }
  if (error instanceof RateLimitedError) {
    return {
      status: 429,
      code: 'rate_limited',
      error: error.message,
      resolution: `Wait ${error.retryAfterSeconds} seconds and send the request again.`,
    };
  }
  if (error instanceof UnavailableError || isConnectionLoss(error)) {
    return {
      status: 503,
      code: 'unavailable',
      error: error instanceof UnavailableError ? error.message : 'The database cannot be reached',
      resolution: 'Nothing was written. Send the request again in a moment.',
      retryAfterSeconds: 1,
    };
  }
  const early = refusedEarly(error) ?? (error instanceof Error && refusedEarly(error.cause));
  if (early) return early;
  if (error instanceof HttpException && error.getStatus() === 404) {
    return { status: 404, code: 'not_found', error: 'This path does not exist' };
  }
  return { status: 500, code: 'internal', error: 'Something went wrong on our side' };
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
}

/** Nest wraps what Fastify throws. */
function refusedEarly(error: unknown): Answer | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return REFUSED_EARLY[String(error.code)];
}
