import { Body, Controller, Get, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RejectedError, type FieldErrors } from '#kernel/errors.js';
import type { AuditedWriter } from '#event-store/commands/audited-writes.service.js';
import { TakesForm, type Form } from '#http/body-kinds.js';
import { Throttle } from '#http/throttle.js';
import { MIN_PASSWORD_LENGTH } from '#identity/password.js';
import { SetPassword } from '#identity/user.commands.js';
import { ConsoleWriter, CurrentUser, type SignedInUser } from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { loadView } from '#pages/view.js';
import { Reauthentication } from './reauthentication.service.js';

type FirstPasswordView = { errors: FieldErrors; minPasswordLength: number };

const view = loadView<FirstPasswordView>(import.meta.url, './views/first-password.eta');

/** Serves the page on which users replace a generated password, before they reach any other. */
@Controller('app/account/first-password')
export class FirstPasswordController {
  constructor(
    private readonly bus: CommandBus,
    private readonly reauthentication: Reauthentication,
    private readonly pages: Pages,
  ) {}

  @Get()
  async show(
    @CurrentUser() { task }: SignedInUser,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    if (task !== 'password') return this.pages.redirect(reply, '/app/account');
    await this.send(request, reply, {});
  }

  @Post()
  @TakesForm()
  @Throttle(30)
  async set(
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { userId, sessionId } = user;
    const field = 'current_password';
    try {
      await this.reauthentication.requirePassword(user, form[field], field, { request, reply });
      await this.bus.execute(new SetPassword(by, userId, form['password'] ?? '', sessionId));
    } catch (error) {
      if (!(error instanceof RejectedError)) throw error;
      return this.send(request, reply.status(422), error.errors);
    }
    await this.pages.redirect(reply, '/app');
  }

  private async send(
    request: FastifyRequest,
    reply: FastifyReply,
    errors: FieldErrors,
  ): Promise<void> {
    await this.pages.send(request, reply, {
      view,
      title: this.pages.localize(request).t.signIn.firstPassword.title,
      status: reply.statusCode,
      width: 'narrow',
      data: { errors, minPasswordLength: MIN_PASSWORD_LENGTH },
    });
  }
}
