import { Body, Controller, Get, Post, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AuditedWriter } from '#event-store/commands/audited-writes.service.js';
import { TakesForm, type Form } from '#http/body-kinds.js';
import { Throttle } from '#http/throttle.js';
import { SecondFactors } from '#identity/second-factors.service.js';
import {
  ConsoleWriter,
  CurrentStore,
  CurrentUser,
  RequiresOperation,
  type EnteredStore,
  type SignedInUser,
} from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { Reauthentication } from '#sign-in/reauthentication.service.js';

/** Lets owners require two-step sign-in of everybody in their store. */
@Controller('app/stores/:account_id/users/second-factor')
export class SecondFactorRuleController {
  constructor(
    private readonly factors: SecondFactors,
    private readonly reauthentication: Reauthentication,
    private readonly pages: Pages,
  ) {}

  @Get()
  @RequiresOperation('users.require_second_factor')
  async ask(
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentStore() store: EnteredStore,
  ): Promise<void> {
    await this.sendQuestion(request, reply, store, []);
  }

  @Post()
  @RequiresOperation('users.require_second_factor')
  @TakesForm()
  @Throttle(30)
  async change(
    @Body() form: Form,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentUser() user: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<void> {
    const exchange = { request, reply };
    const password = form['current_password'];
    const errors = await this.reauthentication.findPasswordErrors(user, password, exchange);
    if (errors.length > 0) return this.sendQuestion(request, reply, store, errors);
    await this.factors.require(by, store.id, form['required'] === 'yes');
    await this.pages.redirect(reply, `/app/stores/${store.id}/users`);
  }

  /** Asks whether to turn the rule on or off, whichever it is not. */
  private async sendQuestion(
    request: FastifyRequest,
    reply: FastifyReply,
    { id, name }: EnteredStore,
    passwordErrors: readonly string[],
  ): Promise<void> {
    const isRequired = await this.factors.isRequiredBy(id);
    const { secondFactorRule: t, back } = this.pages.localize(request).t.signIn;
    await this.pages.sendConfirmation(request, reply, {
      question: isRequired ? t.askOff : t.askOn,
      about: name,
      text: isRequired ? t.askOffText : t.askOnText,
      yes: isRequired ? t.turnOff : t.turnOn,
      no: back,
      action: `/app/stores/${id}/users/second-factor`,
      fields: { required: isRequired ? 'no' : 'yes' },
      passwordErrors,
      back: `/app/stores/${id}/users`,
    });
  }
}
