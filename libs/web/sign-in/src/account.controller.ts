import { Body, Controller, Get, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RejectedError, type FieldErrors } from '#kernel/errors.js';
import type { AuditedWriter } from '#event-store/commands/audited-writes.service.js';
import { TakesForm, type Form } from '#http/form-bodies.js';
import { Throttle } from '#http/throttle.js';
import { normalizeEmailAddress } from '#kernel/email-address.js';
import { MIN_PASSWORD_LENGTH } from '#identity/password.js';
import { SecondFactors } from '#identity/second-factors.service.js';
import { Sessions } from '#identity/sessions.service.js';
import { SignIns } from '#identity/sign-ins.service.js';
import { SetPassword, UpdateUser } from '#identity/user.commands.js';
import { ConsoleWriter, CurrentUser, type SignedInUser } from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { loadView } from '#pages/view.js';
import { Addresses } from './addresses.service.js';
import { readFormText } from './form-text.js';
import { Reauthentication } from './reauthentication.service.js';

type AccountView = {
  done: string;
  /** The form that was refused, its values and its errors. */
  form: string;
  values: { name: string; email: string };
  errors: FieldErrors;
  minPasswordLength: number;
  hasSecondFactor: boolean;
  codesLeftCount: number;
  otherSessionsCount: number;
};

const accountView = loadView<AccountView>(import.meta.url, './views/account.eta');

const DONE = new Map([
  ['saved', 'Saved.'],
  ['address_link', 'Saved. To use your new address, open the link that we have sent to it.'],
  ['address', 'Your e-mail address has been changed.'],
  [
    'afresh',
    'You are signed in. Your address was not confirmed until now, so somebody else may have created this account. For your safety, its password, codes, API tokens and all other sessions have ended. Create new tokens for your tills and web shops.',
  ],
  ['password', 'Your new password is set. You have been signed out everywhere else.'],
  ['sessions', 'You have been signed out everywhere else.'],
  ['second_factor_off', 'Two-step verification is off.'],
]);

const PER_MINUTE = { default: { limit: 30, ttl: 60_000 } };

/** Serves the pages of the user's own account. */
@Controller('app/account')
export class AccountController {
  constructor(
    private readonly bus: CommandBus,
    private readonly signIns: SignIns,
    private readonly sessions: Sessions,
    private readonly secondFactors: SecondFactors,
    private readonly reauthentication: Reauthentication,
    private readonly addresses: Addresses,
    private readonly pages: Pages,
  ) {}

  @Get()
  async show(
    @Query('done') done: string | undefined,
    @CurrentUser() user: SignedInUser,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.send(request, reply, user, { done: DONE.get(String(done)) ?? '' });
  }

  @Post()
  @TakesForm()
  @Throttle(PER_MINUTE)
  async update(
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const values = {
      name: readFormText(form, 'name'),
      email: normalizeEmailAddress(readFormText(form, 'email')),
    };
    const isNewAddress = values.email !== user.email;
    try {
      // Links for new passwords go to this address.
      if (isNewAddress) {
        this.addresses.assertMailIsConfigured();
        await this.reauthentication.requirePassword(
          user,
          form['current_password'],
          'current_password',
          {
            request,
            reply,
          },
        );
      }
      await this.bus.execute(new UpdateUser(by, user.userId, { name: values.name }));
      if (isNewAddress) await this.addresses.requestChange(by, user, values.email);
    } catch (error) {
      return this.sendErrors(error, request, reply, user, { form: 'profile', values });
    }
    await this.pages.redirect(
      reply,
      `/app/account?done=${isNewAddress ? 'address_link' : 'saved'}`,
    );
  }

  @Post('password')
  @TakesForm()
  @Throttle(PER_MINUTE)
  async changePassword(
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { userId, sessionId } = user;
    try {
      const field = 'current_password';
      await this.reauthentication.requirePassword(user, form[field], field, { request, reply });
      await this.bus.execute(new SetPassword(by, userId, form['password'] ?? '', sessionId));
    } catch (error) {
      return this.sendErrors(error, request, reply, user, { form: 'password' });
    }
    await this.pages.redirect(reply, '/app/account?done=password');
  }

  @Post('sessions/end')
  @TakesForm()
  async endOthers(
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.signIns.signOutElsewhere(by, user);
    await this.pages.redirect(reply, '/app/account?done=sessions');
  }

  private async sendErrors(
    error: unknown,
    request: FastifyRequest,
    reply: FastifyReply,
    user: SignedInUser,
    state: Pick<Partial<AccountView>, 'form' | 'values'>,
  ): Promise<void> {
    if (!(error instanceof RejectedError)) throw error;
    await this.send(request, reply.status(422), user, { ...state, errors: error.errors });
  }

  private async send(
    request: FastifyRequest,
    reply: FastifyReply,
    user: SignedInUser,
    state: Partial<AccountView>,
  ): Promise<void> {
    const factor = await this.secondFactors.findState(user.userId);
    await this.pages.send(request, reply, {
      view: accountView,
      title: 'Your account',
      status: reply.statusCode,
      width: 'form',
      data: {
        done: '',
        form: '',
        values: { name: user.name, email: user.email },
        errors: {},
        minPasswordLength: MIN_PASSWORD_LENGTH,
        hasSecondFactor: factor.state === 'on',
        codesLeftCount: factor.state === 'on' ? factor.codesLeft : 0,
        otherSessionsCount: await this.sessions.countOthers(user),
        ...state,
      },
    });
  }
}
