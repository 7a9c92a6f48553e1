import { Body, Controller, Get, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { readSource, type AuthenticatedRequest } from '#platform/http/caller.js';
import { TakesForm, type Form } from '#platform/http/body-kinds.js';
import { Throttle } from '#platform/http/throttle.js';
import { MIN_PASSWORD_LENGTH } from '#identity/password.js';
import { WithoutSession, Localized } from '#web/pages/current-user.js';
import { loadView } from '#web/pages/view.js';
import { type PageResult, showPage, redirectTo } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import { localizeRequest } from '#web/pages/localize.js';
import { SessionCookies } from './session-cookies.service.js';
import { readFormText } from './form-text.js';
import { PasswordResets } from './password-resets.service.js';
import { describeRejection, type FormErrors } from '#web/pages/form-errors.js';

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
  minPasswordLength: number;
}>(import.meta.url, './views/reset.eta');

@Controller('app/password')
export class PasswordResetsController {
  constructor(
    private readonly resets: PasswordResets,
    private readonly sessionCookies: SessionCookies,
    private readonly config: Config,
  ) {}

  @Get('forgot')
  @WithoutSession()
  async showForgot(
    @Query('done') done: string | undefined,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    return showPage({
      view: forgotView,
      title: localization.t.signIn.forgot.title,
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
  async requestLink(@Body() form: Form, @Req() request: FastifyRequest): Promise<PageResult> {
    await this.resets.requestLink(
      readSource(request as AuthenticatedRequest),
      readFormText(form, 'email'),
    );
    return redirectTo('/app/password/forgot?done=sent');
  }

  @Get('reset')
  @WithoutSession()
  @Throttle(10)
  async showReset(
    @Query('token') token: string | undefined,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    return this.showForm(localization, String(token ?? ''), null);
  }

  @Post('reset')
  @WithoutSession()
  @TakesForm()
  @Throttle(10)
  async reset(
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const token = form['token'] ?? '';
    try {
      const visitor = this.sessionCookies.readVisitor(request);
      const browser = await this.resets.use(visitor, token, form['password'] ?? '');
      if (browser === undefined) return await this.showForm(localizeRequest(request), token, null);
      this.sessionCookies.setTrustedBrowser(reply, browser);
    } catch (error) {
      const localization = localizeRequest(request);
      return this.showForm(localization, token, describeRejection(error, localization));
    }
    this.sessionCookies.clear(reply);
    return redirectTo('/app/sign-in?done=password');
  }

  private async showForm(
    localization: Localization,
    token: string,
    errors: FormErrors | null,
  ): Promise<PageResult> {
    const user = await this.resets.find(token);
    return showPage({
      view: resetView,
      title: localization.t.signIn.reset.title,
      data: {
        token,
        email: user?.email ?? null,
        endsTokens: user?.endsTokens ?? false,
        minPasswordLength: MIN_PASSWORD_LENGTH,
      },
      errors,
      ...(!user && { status: 404 }),
      width: 'narrow',
    });
  }
}
