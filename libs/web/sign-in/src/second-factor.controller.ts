import { Body, Controller, Get, Post, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { toString as qrCodeOf } from 'qrcode';
import type { AuditedWriter } from '#event-store/commands/audited-writes.service.js';
import { TakesForm, type Form } from '#http/body-kinds.js';
import { Throttle } from '#http/throttle.js';
import { createEnrolmentUri, renderSecret } from '#identity/second-factor.js';
import { SecondFactors } from '#identity/second-factors.service.js';
import { ConsoleWriter, CurrentUser, type SignedInUser } from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { loadView } from '#pages/view.js';
import { readFormText } from './form-text.js';
import { Reauthentication } from './reauthentication.service.js';

type CodesView = {
  state: 'off' | 'waiting' | 'on';
  /** Whether the user can do nothing else before. */
  isRequired: boolean;
  /** During enrolment: an SVG, and the same as a link for an app on this phone. */
  qr: string;
  uri: string;
  secret: string;
  codesLeftCount: number;
  /** The refused form and its errors. */
  refused: { form: string; errors: readonly string[] };
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
    private readonly pages: Pages,
  ) {}

  @Get()
  async show(
    @CurrentUser() user: SignedInUser,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.send(request, reply, user, { form: '', errors: [] });
  }

  @Post('begin')
  @TakesForm()
  @Throttle(30)
  async begin(
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    if (!(await this.confirmPassword(form, user, 'begin', request, reply))) return;
    await this.factors.beginEnrolment(by, user.userId);
    await this.pages.redirect(reply, '/app/account/codes');
  }

  @Post('confirm')
  @TakesForm()
  @Throttle(30)
  async confirm(
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const recoveryCodes = await this.factors.confirm(by, user.userId, readFormText(form, 'code'));
    if (!recoveryCodes) {
      const errors = [
        'is wrong. Wait for the next one, and check that the clock of your phone is right',
      ];
      return this.send(request, reply.status(422), user, { form: 'confirm', errors });
    }
    await this.reauthentication.renewSession(user, { request, reply }, true);
    await this.showOnce(request, reply, recoveryCodes, true);
  }

  @Post('recovery')
  @TakesForm()
  @Throttle(30)
  async renew(
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    if (!(await this.confirmPassword(form, user, 'recovery', request, reply))) return;
    const recoveryCodes = await this.factors.renewCodes(by, user.userId);
    if (!recoveryCodes) return this.pages.redirect(reply, '/app/account/codes');
    await this.showOnce(request, reply, recoveryCodes, false);
  }

  @Post('off')
  @TakesForm()
  @Throttle(30)
  async turnOff(
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    if (!(await this.confirmPassword(form, user, 'off', request, reply))) return;
    await this.factors.remove(by, user.userId);
    await this.pages.redirect(reply, '/app/account?done=second_factor_off');
  }

  /** Asks for the password again. @returns false when it has sent the page with the error */
  private async confirmPassword(
    form: Form,
    user: SignedInUser,
    name: string,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<boolean> {
    const exchange = { request, reply };
    const password = form['password'];
    const errors = await this.reauthentication.findPasswordErrors(user, password, exchange);
    if (errors.length > 0) {
      await this.send(request, reply.status(422), user, { form: name, errors });
    }
    return errors.length === 0;
  }

  private async send(
    request: FastifyRequest,
    reply: FastifyReply,
    { userId, email, task }: SignedInUser,
    refused: CodesView['refused'],
  ): Promise<void> {
    const factor = await this.factors.findState(userId);
    const secret = factor.state === 'waiting' ? factor.secret : null;
    const uri = secret && createEnrolmentUri(secret, email);
    await this.pages.send(request, reply, {
      view: codesView,
      title: this.pages.localize(request).t.signIn.secondFactor.title,
      status: reply.statusCode,
      width: 'form',
      data: {
        state: factor.state,
        isRequired: task === 'second_factor',
        qr: uri === null ? '' : await qrCodeOf(uri, { type: 'svg', margin: 0 }),
        uri: uri ?? '',
        secret: secret ? renderSecret(secret) : '',
        codesLeftCount: factor.state === 'on' ? factor.codesLeft : 0,
        refused,
      },
    });
  }

  /** Shows the codes in the response itself: only their hashes are stored, so a redirect would lose them. */
  private async showOnce(
    request: FastifyRequest,
    reply: FastifyReply,
    recoveryCodes: string[],
    isNew: boolean,
  ): Promise<void> {
    await this.pages.send(request, reply, {
      view: recoveryView,
      title: this.pages.localize(request).t.signIn.secondFactor.recovery,
      status: 200,
      width: 'form',
      data: { codes: recoveryCodes, isNew },
    });
  }
}
