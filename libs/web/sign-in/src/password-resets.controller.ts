import { Body, Controller, Get, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RejectedError } from '#kernel/errors.js';
import { readSource, type GatedRequest } from '#http/caller.js';
import { TakesForm, type Form } from '#http/form-bodies.js';
import { Throttle } from '#http/throttle.js';
import { SHORTEST_PASSWORD } from '#identity/password.js';
import { WithoutSession } from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { viewOf } from '#pages/view.js';
import { Doors } from './doors.service.js';
import { textIn } from './form-text.js';
import { PasswordResets } from './password-resets.service.js';

const forgot = viewOf<{ sent: boolean; possible: boolean }>(import.meta.url, './views/forgot.eta');
const reset = viewOf<{
  token: string;
  /** Null: the link does not count any more. */
  email: string | null;
  /** What else ends with the password. */
  endsTokens: boolean;
  errors: string[];
  shortest: number;
}>(import.meta.url, './views/reset.eta');

const PER_ADDRESS = { default: { limit: 10, ttl: 60_000 } };

@Controller('app/password')
export class PasswordResetsController {
  constructor(
    private readonly resets: PasswordResets,
    private readonly doors: Doors,
    private readonly pages: Pages,
  ) {}

  @Get('forgot')
  @WithoutSession()
  async showForgot(
    @Query('done') done: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.pages.send(request, reply, {
      view: forgot,
      title: 'Forgotten password',
      data: { sent: done === 'sent', possible: this.resets.isPossible },
      width: 'narrow',
    });
  }

  @Post('forgot')
  @WithoutSession()
  @TakesForm()
  @Throttle(PER_ADDRESS)
  async ask(
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.resets.ask(readSource(request as GatedRequest), textIn(form, 'email'));
    await this.pages.redirect(reply, '/app/password/forgot?done=sent');
  }

  @Get('reset')
  @WithoutSession()
  @Throttle(PER_ADDRESS)
  async showReset(
    @Query('token') given: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.sendReset(request, reply, String(given ?? ''), []);
  }

  @Post('reset')
  @WithoutSession()
  @TakesForm()
  @Throttle(PER_ADDRESS)
  async reset(
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const token = form['token'] ?? '';
    try {
      const visitor = this.doors.visitorOf(request);
      const browser = await this.resets.use(visitor, token, form['password'] ?? '');
      if (browser === undefined) return await this.sendReset(request, reply, token, []);
      this.doors.remember(reply, browser);
    } catch (error) {
      if (!(error instanceof RejectedError)) throw error;
      return this.sendReset(request, reply.status(422), token, error.errors['password'] ?? []);
    }
    this.doors.letOut(reply);
    await this.pages.redirect(reply, '/app/sign-in?done=password');
  }

  private async sendReset(
    request: FastifyRequest,
    reply: FastifyReply,
    token: string,
    errors: string[],
  ): Promise<void> {
    const user = await this.resets.find(token);
    await this.pages.send(request, reply, {
      view: reset,
      title: 'New password',
      data: {
        token,
        email: user?.email ?? null,
        endsTokens: user?.endsTokens ?? false,
        errors,
        shortest: SHORTEST_PASSWORD,
      },
      status: user ? reply.statusCode : 404,
      width: 'narrow',
    });
  }
}
