import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { CommandContext, KeyedRequest, RequestSource } from '#platform/kernel/aggregate.js';
import type { Awaitable } from '#platform/kernel/awaitable.js';
import { ForbiddenError } from '#platform/kernel/errors.js';

/**
 * @property accountIds the only accounts that the token may access; null: all that its principal belongs to
 * @property isReadOnly whether every method that writes is refused
 */
export type Caller = {
  tokenId: number;
  principalId: number;
  perMinute: number | null;
  accountIds: readonly number[] | null;
  isReadOnly: boolean;
};

/** The token of a request to the admin API, which acts for the operator. */
export type AdminCaller = { tokenId: number; name: string; isReadOnly: boolean };

/** A request that has passed the request guard. */
export type AuthenticatedRequest = FastifyRequest &
  RequestSource & {
    caller?: Caller;
    /** In the admin API, in place of `caller`. */
    adminCaller?: AdminCaller;
    /** Ids of the owner of a session, for the access log; those of a token are in `caller`. */
    sessionIds?: Record<string, number>;
    accountId?: number;
    /** Reason for refusing an authenticated caller, for the access log. */
    denial?: 'role' | 'read_only' | 'admin_address' | 'cross_site' | 'csrf_token' | 'unencrypted';
    keyed?: KeyedRequest;
    /** HMAC of the Idempotency-Key, for the access log, also when the stored response is replayed. */
    idempotencyKey?: Buffer;
    /** Error that the request ended with. */
    failure?: unknown;
  };

/** Methods that change nothing (RFC 9110, section 9.2.1). */
export const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Asserts that the token is not read-only, or the request writes nothing. A path or method that does not exist is
 * still 404 or 405.
 * @throws ForbiddenError
 */
export function assertMayWrite(
  request: AuthenticatedRequest,
  { isReadOnly }: { isReadOnly: boolean },
): void {
  if (!isReadOnly || SAFE_METHODS.has(request.method) || request.is404) return;
  request.denial = 'read_only';
  throw new ForbiddenError('This token may only read', 'Use a token that is not read-only.');
}

/** Returns the token of the header Authorization; undefined without one, or with another scheme. */
export function readBearerToken({ headers }: FastifyRequest): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1];
}

/** Returns the source of a request, for the audit log. */
export function readSource({ requestId, ipAddress }: AuthenticatedRequest): RequestSource {
  return { requestId, ...(ipAddress !== undefined && { ipAddress }) };
}

export type AccountDenial = 'not_found' | 'forbidden';

/** Authenticates callers for the request guard; implemented by identity. */
export abstract class Authenticator {
  /** Name of an account in a 404. */
  abstract readonly accountName: string;

  /** Authenticates a caller, at once unless the token has to be looked up. */
  abstract authenticate(token: string): Awaitable<Caller | undefined>;
  /**
   * Checks whether the caller may use an operation in an account, without a lookup.
   * @param operation the id of its `@Endpoint`
   * @returns null: allowed; not_found: the caller may not know that the account exists; undefined: has to be looked up
   */
  abstract findKnownDenial(
    caller: Caller,
    accountId: number,
    operation: string | undefined,
  ): AccountDenial | null | undefined;
  /**
   * Checks the same, with a lookup where it takes one.
   * @throws UnauthorizedError when the caller has been removed in the meantime
   */
  abstract findDenial(
    caller: Caller,
    accountId: number,
    operation: string | undefined,
  ): Promise<AccountDenial | null>;
}

export const Authenticated = createParamDecorator((_: unknown, execution: ExecutionContext) => {
  const { caller } = execution.switchToHttp().getRequest<AuthenticatedRequest>();
  if (!caller) throw new Error('the request guard admits no request without a caller');
  return caller;
});

/** Injects the caller and the account of the path. */
export const Context = createParamDecorator(
  (_: unknown, execution: ExecutionContext): CommandContext => {
    const request = execution.switchToHttp().getRequest<AuthenticatedRequest>();
    const { caller, accountId, keyed } = request;
    if (!caller || accountId === undefined) throw new Error('the route names no account');
    return {
      accountId,
      actor: { type: 'token', id: caller.tokenId },
      channel: 'api',
      ...readSource(request),
      ...(keyed && { keyed }),
    };
  },
);
