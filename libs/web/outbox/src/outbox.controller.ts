import { Controller, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Pool } from 'pg';
import type { CommandContext } from '#kernel/aggregate.js';
import { NotFoundError } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import { TakesForm } from '#http/form-bodies.js';
import { Outbox } from '#messages/outbox.service.js';
import { ConsoleContext, CurrentStore, Operation, type EnteredStore } from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { viewOf } from '#pages/view.js';
import {
  explanationOf,
  lineOf,
  timesIn,
  type MessageData,
  type OutboxData,
} from './outbox-page.js';

const list = viewOf<OutboxData>(import.meta.url, './views/outbox.eta');
const one = viewOf<MessageData>(import.meta.url, './views/message.eta');

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** What was sent to the customers of a store, and what was not. */
@Controller('app/stores/:account_id/messages')
export class OutboxController {
  constructor(
    private readonly pages: Pages,
    private readonly outbox: Outbox,
    private readonly pool: Pool,
  ) {}

  @Get()
  @Operation('outbox.read')
  async list(
    @CurrentStore() store: EnteredStore,
    @Query('before') before: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { entries, older } = await this.outbox.list(store.id, idOf(before));
    const base = baseOf(store);
    const time = await this.timesOf(store);
    await this.pages.send(request, reply, {
      view: list,
      title: 'Messages',
      data: {
        lines: entries.map((entry) => lineOf(entry, base, time)),
        older: older === null ? null : `${base}?before=${older}`,
        holds: entries.some(({ state }) => state === 'held'),
      },
    });
  }

  @Get(':message_id')
  @Operation('outbox.read')
  async show(
    @CurrentStore() store: EnteredStore,
    @Param('message_id') path: string,
    @Query('done') done: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { entry, preview, canBeSent } = await this.outbox.find(store.id, knownId(path));
    const base = baseOf(store);
    const time = await this.timesOf(store);
    await this.pages.send(request, reply, {
      view: one,
      title: `Message to ${entry.customer}`,
      width: 'form',
      data: {
        ...lineOf(entry, base, time),
        explanation: explanationOf(entry, time),
        providerId: entry.providerId,
        preview,
        canBeSent,
        send: `${base}/${entry.id}/send`,
        back: base,
        done: done === 'sent',
      },
    });
  }

  @Post(':message_id/send')
  @TakesForm()
  @Operation('outbox.send')
  async send(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @Param('message_id') path: string,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const id = knownId(path);
    const isSent = await this.outbox.send(context, id);
    await this.pages.redirect(reply, `${baseOf(store)}/${id}${isSent ? '?done=sent' : ''}`);
  }

  private async timesOf({ id }: EnteredStore): Promise<(at: Date) => string> {
    const [row] = await ask<{ time_zone: string }>(this.pool, {
      name: 'outbox_time_zone',
      text: 'select time_zone from accounts where id = $1',
      values: [id],
    });
    return timesIn(row?.time_zone ?? 'UTC');
  }
}

function baseOf({ id }: EnteredStore): string {
  return `/app/stores/${id}/messages`;
}

/** @throws NotFoundError */
function knownId(path: string): string {
  const id = idOf(path);
  if (id === null) throw new NotFoundError('Message');
  return id;
}

function idOf(given: unknown): string | null {
  return typeof given === 'string' && UUID.test(given) ? given : null;
}
