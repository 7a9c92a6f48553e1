import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { CommandContext, KeyedRequest } from '#kernel/aggregate.js';

/** A valid token: whose it is and where it reaches. */
export type Caller = { tokenId: number; userId: number; perMinute: number | null };

/** Left on the request by the gate. */
export type GatedRequest = FastifyRequest & {
  requestId: string;
  caller?: Caller;
  accountId?: number;
  keyed?: KeyedRequest;
  /** Why it is refused, or could not be served. */
  failure?: unknown;
};

/** Implemented by identity, asked by the gate: which caller a token belongs to and what it reaches. */
export abstract class Authenticator {
  abstract callerOf(token: string): Promise<Caller | undefined>;
  abstract reaches(caller: Caller, accountId: number): Promise<boolean>;
}

/** The valid token of the request. */
export const Authenticated = createParamDecorator((_: unknown, execution: ExecutionContext) => {
  const { caller } = execution.switchToHttp().getRequest<GatedRequest>();
  if (!caller) throw new Error('the gate lets no one in without a caller');
  return caller;
});

/** Who acts where, for commands and for reads inside one store. */
export const Context = createParamDecorator(
  (_: unknown, execution: ExecutionContext): CommandContext => {
    const request = execution.switchToHttp().getRequest<GatedRequest>();
    const { caller, accountId, requestId, keyed } = request;
    if (!caller || accountId === undefined) throw new Error('the route names no store');
    return {
      accountId,
      actor: { type: 'token', id: caller.tokenId },
      channel: 'api',
      requestId,
      ...(keyed && { keyed }),
    };
  },
);
