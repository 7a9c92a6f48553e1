import { Body, Controller, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import type { Form } from '#platform/http/body-kinds.js';
import { SecondFactors } from '#identity/second-factors.service.js';
import {
  ConsoleWriter,
  CurrentStore,
  CurrentUser,
  type EnteredStore,
  type SignedInUser,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { Reauthentication } from '#web/sign-in/reauthentication.service.js';
import { type PageResult, redirectTo, askToConfirm } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import { localizeRequest } from '#web/pages/localize.js';

/** Lets owners require two-step sign-in of everybody in their store. */
@Controller('app/stores/:account_id/users/second-factor')
export class SecondFactorRuleController {
  constructor(
    private readonly commands: FormCommands,
    private readonly factors: SecondFactors,
    private readonly reauthentication: Reauthentication,
  ) {}

  @GetPage('users.require_second_factor')
  async ask(
    @Localized() localization: Localization,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    return this.showQuestion(localization, store, []);
  }

  @PostForm('users.require_second_factor', '', 30)
  async change(
    @Body() form: Form,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @CurrentUser() user: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const password = form['current_password'];
    const errors = await this.reauthentication.findPasswordErrors(user, password, request);
    if (errors.length > 0) return this.showQuestion(localizeRequest(request), store, errors);
    await this.commands.executeStep(by, 'rule', (keyedWriter) =>
      this.factors.require(keyedWriter, store.id, form['required'] === 'yes'),
    );
    return redirectTo(`/app/stores/${store.id}/users`);
  }

  /** Asks whether to turn the rule on or off, whichever it is not. */
  private async showQuestion(
    localization: Localization,
    { id, name }: EnteredStore,
    passwordErrors: readonly string[],
  ): Promise<PageResult> {
    const isRequired = await this.factors.isRequiredBy(id);
    const { secondFactorRule: t, back } = localization.t.signIn;
    return askToConfirm({
      question: isRequired ? t.askOff : t.askOn,
      about: name,
      text: isRequired ? t.askOffText : t.askOnText,
      yes: isRequired ? t.turnOff : t.turnOn,
      no: back,
      fields: { required: isRequired ? 'no' : 'yes' },
      passwordErrors,
      back: `/app/stores/${id}/users`,
    });
  }
}
