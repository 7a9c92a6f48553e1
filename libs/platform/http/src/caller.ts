import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { CommandContext, KeyedRequest, RequestSource } from '#kernel/aggregate.js';

export type Caller = { tokenId: number; principalId: number; perMinute: number | null };

/** Left on the request by the gate. */
export type AuthenticatedRequest = FastifyRequest &
  RequestSource & {
    caller?: Caller;
    /** Of a session; that of a token is in `caller`. */
    principalId?: number;
    accountId?: number;
    /** Why somebody who is known was not let in, for the access log. */
    refusal?: 'role' | 'cross_site' | 'csrf_token';
    keyed?: KeyedRequest;
    /** Why the request was refused, or failed. */
    failure?: unknown;
  };

/** Says where a request comes from, for the audit log. */
export function readSource({ requestId, ipAddress }: AuthenticatedRequest): RequestSource {
  return { requestId, ...(ipAddress !== undefined && { ipAddress }) };
}

type AccountRefusal = 'not_found' | 'forbidden';

/** Implemented by identity, called by the gate. They answer at once what they need not look up. */
export abstract class Authenticator {
  /** Names an account to callers who may not know of it. */
  abstract readonly accountName: string;

  abstract authenticate(token: string): Caller | undefined | Promise<Caller | undefined>;
  /**
   * Whether the caller is known to be of this account, without looking it up. False: not, or not known.
   */
  abstract isKnownIn(caller: Caller, accountId: number): boolean;
  /**
   * Whether the caller may do this in this account.
   * @param operation the id of its `@Endpoint`
   * @returns null: yes; not_found: the caller may not even know that there is such an account
   * @throws UnauthorizedError when they have been removed meanwhile
   */
  abstract findRefusal(
    caller: Caller,
    accountId: number,
    operation: string | undefined,
  ): AccountRefusal | null | Promise<AccountRefusal | null>;
}

export const Authenticated = createParamDecorator((_: unknown, execution: ExecutionContext) => {
  const { caller } = execution.switchToHttp().getRequest<AuthenticatedRequest>();
  if (!caller) throw new Error('the gate admits no request without a caller');
  return caller;
});

/** The caller and the account of the path. */
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
