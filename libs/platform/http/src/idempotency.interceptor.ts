import {
  Injectable,
  Logger,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import { HTTP_CODE_METADATA } from '@nestjs/common/constants.js';
import type { FastifyReply } from 'fastify';
import { catchError, from, mergeMap, of, throwError, type Observable } from 'rxjs';
import type { KeyedRequest } from '#kernel/aggregate.js';
import { Config } from '#kernel/config.js';
import {
  InProgressError,
  InvalidFieldsError,
  messageOf,
  RejectedError,
  UnknownOutcomeError,
} from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { newId } from '#kernel/randomness.js';
import { isConnectionLoss } from '#database/connection.js';
import { KeyTakenOverError } from '#event-store/event-store.js';
import { StoredResponses, type StoredResponse } from '#event-store/stored-responses.js';
import type { GatedRequest } from './caller.js';
import { StoredRefusal, refusalOf } from './errors.filter.js';
import { HttpMetrics } from './http-metrics.js';

const WRITES = new Set(['POST', 'PATCH', 'PUT', 'DELETE']);
const PRUNE_EVERY_MS = 10 * 60_000;

/**
 * The optional header Idempotency-Key (contract section 1): the same request again gets the same answer.
 * What was committed stands under its key already; here the rest is stored, or given up.
 */
@Injectable()
export class IdempotencyInterceptor implements NestInterceptor, OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger('idempotency');
  private readonly stopped = new AbortController();

  constructor(
    private readonly responses: StoredResponses,
    private readonly metrics: HttpMetrics,
    private readonly config: Config,
  ) {}

  onModuleInit(): void {
    void this.pruneNowAndThen();
  }

  onModuleDestroy(): void {
    this.stopped.abort();
  }

  async intercept(execution: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const http = execution.switchToHttp();
    const request = http.getRequest<GatedRequest>();
    const header = request.headers['idempotency-key'];
    if (header === undefined || !request.caller || !WRITES.has(request.method)) {
      return next.handle();
    }
    const keyed: KeyedRequest = {
      key: this.responses.fingerprint(
        request.caller.tokenId,
        request.method,
        request.url,
        keyOf(header),
      ),
      holder: newId(),
      status: Number(Reflect.getMetadata(HTTP_CODE_METADATA, execution.getHandler())),
      stored: false,
    };
    const body = this.responses.fingerprint(canonicalText(request.body));
    const begun = await this.responses.begin(keyed, body);
    if (begun.state === 'running') throw new InProgressError();
    if (begun.state === 'other') throw usedOtherwise();
    if (begun.state === 'done') {
      http.getResponse<FastifyReply>().header('idempotent-replayed', 'true');
      this.metrics.replayed();
      if (begun.status >= 400) throw new StoredRefusal(begun);
      return of(begun.body);
    }
    request.keyed = keyed;
    return next.handle().pipe(
      mergeMap((answer: unknown) =>
        from(this.settle(request, { status: keyed.status, body: answer }).then(() => answer)),
      ),
      catchError((error: unknown) =>
        from(this.settle(request, this.responseOf(error, request))).pipe(
          mergeMap(() => throwError(() => error)),
        ),
      ),
    );
  }

  private responseOf(
    error: unknown,
    request: GatedRequest,
  ): StoredResponse | 'nothing' | 'unknown' {
    if (error instanceof RejectedError && !(error instanceof InvalidFieldsError)) {
      return refusalOf(error, request, this.config.publicUrl);
    }
    const unsettled = [UnknownOutcomeError, KeyTakenOverError].some(
      (kind) => error instanceof kind,
    );
    return unsettled || isConnectionLoss(error) ? 'unknown' : 'nothing';
  }

  /**
   * Nothing was committed that is not stored already, so a failure here costs a retry nothing but a
   * second look at the same rules.
   */
  private async settle(
    { keyed, requestId }: GatedRequest,
    came: StoredResponse | 'nothing' | 'unknown',
  ): Promise<void> {
    if (!keyed || keyed.stored || came === 'unknown') return;
    try {
      if (came === 'nothing') await this.responses.release(keyed);
      else await this.responses.store(keyed, came);
    } catch (error) {
      this.log.warn(`the answer under an Idempotency-Key is not stored: ${messageOf(error)}`, {
        request_id: requestId,
      });
    }
  }

  private async pruneNowAndThen(): Promise<void> {
    const { signal } = this.stopped;
    while (!signal.aborted) {
      try {
        while (!signal.aborted && (await this.responses.prune())) continue;
      } catch (error) {
        this.log.warn(`old answers are forgotten later: ${messageOf(error)}`);
      }
      await pause(PRUNE_EVERY_MS, signal);
    }
  }
}

/** @throws InvalidFieldsError unless it is 1 to 255 printable ASCII characters */
function keyOf(header: string | string[]): string {
  const given = [header].flat().join(', ');
  const key = /^"(.*)"$/s.exec(given)?.[1] ?? given;
  if (/^[\x20-\x7e]{1,255}$/.test(key)) return key;
  throw new InvalidFieldsError({
    idempotency_key: ['must be 1 to 255 printable ASCII characters'],
  });
}

/**
 * Equal JSON values are equal texts. Not RFC 8785, which has no text for half a surrogate pair nor for
 * 1e400: whether they do any harm is for the fields to say.
 * @throws InvalidFieldsError when nobody could have meant it
 */
function canonicalText(body: unknown): string {
  try {
    return JSON.stringify(body, (_, value: unknown) => sorted(value)) ?? '';
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new InvalidFieldsError({ base: ['The body is nested too deeply'] });
  }
}

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function usedOtherwise(): RejectedError {
  return new RejectedError(
    { idempotency_key: ['was used for a request with another body'] },
    'idempotency_key_reused',
    'Use a new key for every new request; the same one only to repeat a request exactly.',
  );
}
