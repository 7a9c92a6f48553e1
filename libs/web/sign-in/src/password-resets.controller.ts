import { Body, Controller, Get, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { RejectedError } from '#kernel/errors.js';
import { readSource, type AuthenticatedRequest } from '#http/caller.js';
import { TakesForm, type Form } from '#http/body-kinds.js';
import { Throttle } from '#http/throttle.js';
import { MIN_PASSWORD_LENGTH } from '#identity/password.js';
import { WithoutSession } from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { loadView } from '#pages/view.js';
import { SessionCookies } from './session-cookies.service.js';
import { readFormText } from './form-text.js';
import { PasswordResets } from './password-resets.service.js';

const forgotView = loadView<{
  isSent: boolean;
  isPossible: boolean;
  supportContact: Config['supportContact'];
}>(import.meta.url, './views/forgot.eta');
const resetView = loadView<{
  token: string;
  /** Null: the link has expired. */
  email: string | null;
  /** Whether the account's API tokens end with the password. */
  endsTokens: boolean;
  errors: string[];
  minPasswordLength: number;
}>(import.meta.url, './views/reset.eta');

@Controller('app/password')
export class PasswordResetsController {
  constructor(
    private readonly resets: PasswordResets,
    private readonly sessionCookies: SessionCookies,
    private readonly pages: Pages,
    private readonly config: Config,
  ) {}

  @Get('forgot')
  @WithoutSession()
  async showForgot(
    @Query('done') done: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.pages.send(request, reply, {
      view: forgotView,
      title: this.pages.localize(request).t.signIn.forgot.title,
      data: {
        isSent: done === 'sent',
        isPossible: this.resets.isPossible,
        supportContact: this.config.supportContact,
      },
      width: 'narrow',
    });
  }

  @Post('forgot')
  @WithoutSession()
  @TakesForm()
  @Throttle(10)
  async requestLink(
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.resets.requestLink(
      readSource(request as AuthenticatedRequest),
      readFormText(form, 'email'),
    );
    await this.pages.redirect(reply, '/app/password/forgot?done=sent');
  }

  @Get('reset')
  @WithoutSession()
  @Throttle(10)
  async showReset(
    @Query('token') token: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.sendReset(request, reply, String(token ?? ''), []);
  }

  @Post('reset')
  @WithoutSession()
  @TakesForm()
  @Throttle(10)
  async reset(
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const token = form['token'] ?? '';
    try {
      const visitor = this.sessionCookies.readVisitor(request);
      const browser = await this.resets.use(visitor, token, form['password'] ?? '');
      if (browser === undefined) return await this.sendReset(request, reply, token, []);
      this.sessionCookies.setTrustedBrowser(reply, browser);
    } catch (error) {
      if (!(error instanceof RejectedError)) throw error;
      return this.sendReset(request, reply.status(422), token, error.errors['password'] ?? []);
    }
    this.sessionCookies.clear(reply);
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
      view: resetView,
      title: this.pages.localize(request).t.signIn.reset.title,
      data: {
        token,
        email: user?.email ?? null,
        endsTokens: user?.endsTokens ?? false,
        errors,
        minPasswordLength: MIN_PASSWORD_LENGTH,
      },
      status: user ? reply.statusCode : 404,
      width: 'narrow',
    });
  }
}
