import { createParamDecorator, Injectable, type ExecutionContext } from '@nestjs/common';
import { CommandBus, type Command } from '@nestjs/cqrs';
import type { EntityManager } from 'typeorm';
import type { Awaitable } from '#platform/kernel/awaitable.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { readSource, type AuthenticatedRequest } from '#platform/http/caller.js';

/** Injects the token of the request, as the author of what it changes. */
export const AdminWriter = createParamDecorator(
  (_: unknown, execution: ExecutionContext): AuditedWriter => {
    const request = execution.switchToHttp().getRequest<AuthenticatedRequest>();
    const { adminCaller, keyed } = request;
    if (!adminCaller) throw new Error('the admin guard admits no request without a token');
    return {
      actor: { type: 'admin_token', id: adminCaller.tokenId, name: adminCaller.name },
      channel: 'admin',
      ...readSource(request),
      ...(keyed && { keyed }),
    };
  },
);

/** Executes the commands of the command line for requests, whose responses have more than the commands return. */
@Injectable()
export class AdminCommands {
  constructor(private readonly bus: CommandBus) {}

  /**
   * Executes a command and renders the response in its transaction, so that a repeated request gets the same one.
   * @param create receives the author of the command
   */
  async execute<R, B>(
    by: AuditedWriter,
    create: (by: AuditedWriter) => Command<R>,
    render: (result: R, manager: EntityManager) => Awaitable<B>,
  ): Promise<B> {
    let body: { rendered: B } | undefined;
    const respond = async (result: unknown, manager: EntityManager) => {
      body = { rendered: await render(result as R, manager) };
      return body.rendered;
    };
    await this.bus.execute(create({ ...by, respond }));
    if (!body) throw new Error('an audited command renders its response');
    return body.rendered;
  }
}

/** Renders a response without a body. */
export function renderNothing(): undefined {
  return undefined;
}
