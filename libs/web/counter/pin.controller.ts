import { Body, Controller, Get, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RejectedError } from '#platform/kernel/errors.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { TakesForm, type Form } from '#platform/http/body-kinds.js';
import { Throttle } from '#platform/http/throttle.js';
import { findPinIssue, normalizePin } from '#identity/counter-pin.js';
import { CounterPins, type PinState } from '#identity/counter-pins.service.js';
import {
  ConsoleWriter,
  CurrentUser,
  type SignedInUser,
  Localized,
} from '#web/pages/current-user.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import { loadView } from '#web/pages/view.js';
import { Reauthentication } from '#web/sign-in/reauthentication.service.js';
import type { Localization } from '#translations/translations.js';
import { type PageResult, redirectTo, showPage } from '#web/pages/page-results.js';
import { localizeRequest } from '#web/pages/localize.js';
import { describeRejection, type Rejectable } from '#web/pages/form-errors.js';

type PinView = { state: PinState; flash: string };

const pinView = loadView<PinView>(import.meta.url, './views/pin.eta');

/** Serves the page on which users set the PIN with which they take their turn at a counter. */
@Controller('app/account/pin')
export class PinController {
  constructor(
    private readonly pins: CounterPins,
    private readonly reauthentication: Reauthentication,
  ) {}

  @Get()
  async show(
    @Query('done') done: unknown,
    @CurrentUser() user: SignedInUser,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { pin } = localization.t.counter;
    const messages = { set: pin.done, removed: pin.removed };
    return this.showForm(localization, user, { flash: findFlashMessage(done, messages) });
  }

  /** Asks for the password, because whoever has the PIN can act under the user's name. */
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
    const pin = normalizePin(form['pin'] ?? '');
    const field = 'current_password';
    try {
      const error = findPinIssue(pin);
      if (error !== undefined) throw new RejectedError({ pin: [error] });
      await this.reauthentication.requirePassword(user, form[field], field, { request, reply });
      await this.pins.set(by, user.userId, pin);
    } catch (error) {
      const localization = localizeRequest(request);
      return this.showForm(localization, user, { errors: describeRejection(error, localization) });
    }
    return redirectTo('/app/account/pin?done=set');
  }

  @Post('remove')
  @TakesForm()
  @Throttle(30)
  async remove(
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
  ): Promise<PageResult> {
    await this.pins.remove(by, user.userId);
    return redirectTo('/app/account/pin?done=removed');
  }

  private async showForm(
    localization: Localization,
    { userId }: SignedInUser,
    { flash = '', errors }: { flash?: string } & Rejectable,
  ): Promise<PageResult> {
    return showPage({
      view: pinView,
      title: localization.t.counter.pin.title,
      width: 'form',
      data: { state: await this.pins.findState(userId), flash },
      errors,
    });
  }
}
