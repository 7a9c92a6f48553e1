import { Body, Controller, Get, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { TakesForm, type Form } from '#platform/http/body-kinds.js';
import { Throttle } from '#platform/http/throttle.js';
import { MIN_PASSWORD_LENGTH } from '#identity/password.js';
import { SetPassword } from '#identity/user.commands.js';
import {
  ConsoleWriter,
  CurrentUser,
  type SignedInUser,
  Localized,
} from '#web/pages/current-user.js';
import { loadView } from '#web/pages/view.js';
import { type PageResult, redirectTo, showPage } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import { localizeRequest } from '#web/pages/localize.js';
import { Reauthentication } from './reauthentication.service.js';
import { describeRejection, type FormErrors } from '#web/pages/form-errors.js';

const view = loadView<{ minPasswordLength: number }>(import.meta.url, './views/first-password.eta');

/** Serves the page on which users replace a generated password, before they reach any other. */
@Controller('app/account/first-password')
export class FirstPasswordController {
  constructor(
    private readonly bus: CommandBus,
    private readonly reauthentication: Reauthentication,
  ) {}

  @Get()
  async show(
    @CurrentUser() { task }: SignedInUser,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    if (task !== 'password') return redirectTo('/app/account');
    return this.showForm(localization, null);
  }

  @Post()
  @TakesForm()
  @Throttle(30)
  async set(
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const { userId, sessionId } = user;
    const field = 'current_password';
    try {
      await this.reauthentication.requirePassword(user, form[field], field, { request, reply });
      await this.bus.execute(new SetPassword(by, userId, form['password'] ?? '', sessionId));
    } catch (error) {
      const localization = localizeRequest(request);
      return this.showForm(localization, describeRejection(error, localization));
    }
    return redirectTo('/app');
  }

  private showForm(localization: Localization, errors: FormErrors | null): PageResult {
    return showPage({
      view,
      title: localization.t.signIn.firstPassword.title,
      width: 'narrow',
      data: { minPasswordLength: MIN_PASSWORD_LENGTH },
      errors,
    });
  }
}
