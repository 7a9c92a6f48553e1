import { Body, Controller, Get, Post, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { toString as qrCodeOf } from 'qrcode';
import type { FieldErrors } from '#platform/kernel/errors.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { TakesForm, type Form } from '#platform/http/body-kinds.js';
import { Throttle } from '#platform/http/throttle.js';
import { createEnrolmentUri, renderSecret } from '#identity/second-factor.js';
import { SecondFactors } from '#identity/second-factors.service.js';
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
import { readFormText } from './form-text.js';
import { Reauthentication, type HttpExchange } from './reauthentication.service.js';
import { ISSUES } from '#translations/issues.js';
import { toSentence } from '#web/pages/error-sentences.js';

type CodesView = {
  state: 'off' | 'waiting' | 'on';
  /** Whether the user can do nothing else before. */
  isRequired: boolean;
  /** During enrolment: an SVG, and the same as a link for an app on this phone. */
  qr: string;
  uri: string;
  secret: string;
  codesLeftCount: number;
  /** The form that was rejected. */
  form: string;
};

const codesView = loadView<CodesView>(import.meta.url, './views/codes.eta');
const recoveryView = loadView<{ codes: string[]; isNew: boolean }>(
  import.meta.url,
  './views/recovery.eta',
);

/** Serves the pages of the user's own second factor. */
@Controller('app/account/codes')
export class SecondFactorController {
  constructor(
    private readonly factors: SecondFactors,
    private readonly reauthentication: Reauthentication,
  ) {}

  @Get()
  async show(
    @CurrentUser() user: SignedInUser,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    return this.showCodes(localization, user);
  }

  @Post('begin')
  @TakesForm()
  @Throttle(30)
  async begin(
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const rejection = await this.findPasswordRejection(form, user, 'begin', { request, reply });
    if (rejection) return rejection;
    await this.factors.beginEnrolment(by, user.userId);
    return redirectTo('/app/account/codes');
  }

  @Post('confirm')
  @TakesForm()
  @Throttle(30)
  async confirm(
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const recoveryCodes = await this.factors.confirm(by, user.userId, readFormText(form, 'code'));
    if (!recoveryCodes) {
      const localization = localizeRequest(request);
      const fields = { code: [toSentence(ISSUES.code_wrong, localization.t)] };
      return this.showCodes(localization, user, 'confirm', fields);
    }
    await this.reauthentication.renewSession(user, { request, reply }, true);
    return this.showOnce(localizeRequest(request), recoveryCodes, true);
  }

  @Post('recovery')
  @TakesForm()
  @Throttle(30)
  async renew(
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const rejection = await this.findPasswordRejection(form, user, 'recovery', { request, reply });
    if (rejection) return rejection;
    const recoveryCodes = await this.factors.renewCodes(by, user.userId);
    if (!recoveryCodes) return redirectTo('/app/account/codes');
    return this.showOnce(localizeRequest(request), recoveryCodes, false);
  }

  @Post('off')
  @TakesForm()
  @Throttle(30)
  async turnOff(
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const rejection = await this.findPasswordRejection(form, user, 'off', { request, reply });
    if (rejection) return rejection;
    await this.factors.remove(by, user.userId);
    return redirectTo('/app/account?done=second_factor_off');
  }

  /** Asks for the password again. @returns the page with the error; undefined: it is right */
  private async findPasswordRejection(
    { password }: Form,
    user: SignedInUser,
    form: string,
    exchange: HttpExchange,
  ): Promise<PageResult | undefined> {
    const errors = await this.reauthentication.findPasswordErrors(user, password, exchange.request);
    if (errors.length > 0) {
      const localization = localizeRequest(exchange.request);
      return this.showCodes(localization, user, form, { password: [...errors] });
    }
    await this.reauthentication.renewSession(user, exchange);
    return undefined;
  }

  private async showCodes(
    localization: Localization,
    { userId, email, task }: SignedInUser,
    form = '',
    fields: FieldErrors | null = null,
  ): Promise<PageResult> {
    const factor = await this.factors.findState(userId);
    const secret = factor.state === 'waiting' ? factor.secret : null;
    const uri = secret && createEnrolmentUri(secret, email);
    return showPage({
      view: codesView,
      title: localization.t.signIn.secondFactor.title,
      errors: fields && { fields, text: '' },
      width: 'form',
      data: {
        state: factor.state,
        isRequired: task === 'second_factor',
        qr: uri === null ? '' : await qrCodeOf(uri, { type: 'svg', margin: 0 }),
        uri: uri ?? '',
        secret: secret ? renderSecret(secret) : '',
        codesLeftCount: factor.state === 'on' ? factor.codesLeft : 0,
        form,
      },
    });
  }

  /** Shows the codes in the response itself: only their hashes are stored, so a redirect would lose them. */
  private async showOnce(
    localization: Localization,
    recoveryCodes: string[],
    isNew: boolean,
  ): Promise<PageResult> {
    return showPage({
      view: recoveryView,
      title: localization.t.signIn.secondFactor.recovery,
      width: 'form',
      data: { codes: recoveryCodes, isNew },
    });
  }
}
