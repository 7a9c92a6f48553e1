import { Body, Controller, Get, Post, Query } from '@nestjs/common';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { TakesForm, type Form } from '#platform/http/body-kinds.js';
import { Throttle } from '#platform/http/throttle.js';
import {
  ConsoleWriter,
  CurrentUser,
  type SignedInUser,
  Localized,
} from '#web/pages/current-user.js';
import { PageError } from '#web/pages/page-error.js';
import type { Translations, Localization } from '#translations/translations.js';
import { type PageResult, askToConfirm, redirectTo } from '#web/pages/page-results.js';
import { Addresses } from './addresses.service.js';

/** Serves the link that confirms a new e-mail address. */
@Controller('app/account/address')
export class AddressController {
  constructor(private readonly addresses: Addresses) {}

  @Get()
  @Throttle(30)
  async showConfirmation(
    @Query('token') tokenParameter: string | undefined,
    @CurrentUser() user: SignedInUser,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const token = String(tokenParameter ?? '');
    const email = await this.addresses.find(user, token);
    const { address: t } = localization.t.signIn;
    if (email === undefined) throw createLinkError(user, t);
    return askToConfirm({
      question: t.question,
      about: email,
      text: t.text,
      yes: t.yes,
      no: t.no,
      fields: { token },
      back: '/app/account',
    });
  }

  @Post()
  @TakesForm()
  @Throttle(30)
  async confirm(
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    try {
      await this.addresses.confirm(by, user, form['token'] ?? '');
    } catch (error) {
      const { address: t } = localization.t.signIn;
      if (error instanceof NotFoundError) throw createLinkError(user, t);
      if (!(error instanceof RejectedError)) throw error;
      throw new PageError(409, t.taken, t.takenWhy);
    }
    return redirectTo('/app/account?done=address');
  }
}

function createLinkError({ email }: SignedInUser, t: Translations['signIn']['address']): PageError {
  return new PageError(404, t.gone, t.goneWhy({ email }));
}
