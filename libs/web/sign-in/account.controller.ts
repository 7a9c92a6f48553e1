import { Body, Controller, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { TakesForm, type Form } from '#platform/http/body-kinds.js';
import { parsePathId } from '#platform/http/path.js';
import { Throttle } from '#platform/http/throttle.js';
import { normalizeEmailAddress } from '#platform/kernel/email-address.js';
import { MIN_PASSWORD_LENGTH } from '#identity/password.js';
import { SecondFactors } from '#identity/second-factors.service.js';
import { Sessions } from '#identity/sessions.service.js';
import type { Browser } from '#identity/browser.js';
import { SignIns } from '#identity/sign-ins.service.js';
import { SetPassword, UpdateUser } from '#identity/user.commands.js';
import {
  assertNotKept,
  ConsoleWriter,
  CurrentUser,
  ShowsKeptForm,
  type SignedInUser,
  Localized,
} from '#web/pages/current-user.js';
import { loadView } from '#web/pages/view.js';
import { createTimeFormats } from '#web/pages/local-time.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import type { Localization, Translations } from '#translations/translations.js';
import { type PageResult, redirectTo, askToConfirm, showPage } from '#web/pages/page-results.js';
import { localizeRequest } from '#web/pages/localize.js';
import { Addresses } from './addresses.service.js';
import { readFormText } from './form-text.js';
import { Reauthentication, type HttpExchange } from './reauthentication.service.js';
import { describeRejection, type Rejectable } from '#web/pages/form-errors.js';

type ListedSession = {
  id: number;
  browser: string;
  isCurrent: boolean;
  begunOn: string;
  lastSeen: string;
};

type AccountView = {
  flash: string;
  /** The form that was rejected, and its values. */
  form: string;
  values: { name: string; email: string };
  canChangeEmail: boolean;
  /** How, or why not. */
  emailHint: string;
  minPasswordLength: number;
  hasSecondFactor: boolean;
  codesLeftCount: number;
  sessions: ListedSession[];
};

const accountView = loadView<AccountView>(import.meta.url, './views/account.eta');

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
  ) {}

  @Get()
  async show(
    @Query('done') done: string | undefined,
    @CurrentUser() user: SignedInUser,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const messages = localization.t.signIn.account.done;
    return this.showAccount(localization, user, { flash: findFlashMessage(done, messages) });
  }

  @Post()
  @TakesForm()
  @ShowsKeptForm()
  @Throttle(30)
  async update(
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const values = {
      name: readFormText(form, 'name'),
      email: normalizeEmailAddress(readFormText(form, 'email')),
    };
    const isNewAddress = values.email !== user.email;
    try {
      assertNotKept(request);
      // Links for new passwords go to this address.
      if (isNewAddress) {
        this.addresses.assertMailIsConfigured();
        const field = 'current_password';
        await this.reauthentication.requirePassword(user, form[field], field, { request, reply });
      }
      await this.bus.execute(new UpdateUser(by, user.userId, { name: values.name }));
      if (isNewAddress) await this.addresses.requestChange(by, user, values.email);
    } catch (error) {
      return this.showErrors(error, localizeRequest(request), user, { form: 'profile', values });
    }
    return redirectTo(`/app/account?done=${isNewAddress ? 'address_link' : 'saved'}`);
  }

  @Post('password')
  @TakesForm()
  @Throttle(30)
  async changePassword(
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const { userId, sessionId } = user;
    try {
      const field = 'current_password';
      await this.reauthentication.requirePassword(user, form[field], field, { request, reply });
      await this.bus.execute(new SetPassword(by, userId, form['password'] ?? '', sessionId));
    } catch (error) {
      return this.showErrors(error, localizeRequest(request), user, { form: 'password' });
    }
    return redirectTo('/app/account?done=password');
  }

  @Get('sessions/end')
  askToEndOthers(@Localized() localization: Localization): PageResult {
    return this.askToEnd(localization, null, []);
  }

  @Post('sessions/end')
  @TakesForm()
  @Throttle(30)
  async endOthers(
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const rejection = await this.findPasswordRejection(form, user, { request, reply }, null);
    if (rejection) return rejection;
    await this.signIns.signOutElsewhere(by, user);
    return redirectTo('/app/account?done=sessions');
  }

  @Get('sessions/:id/end')
  async askToEndOther(
    @Param('id') id: string,
    @CurrentUser() user: SignedInUser,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const session = await this.findSession(parsePathId(id), user, localization);
    if (!session) return redirectTo('/app/account#sessions');
    return this.askToEnd(localization, session, []);
  }

  /** Ends one other session. One that has ended already is no error. */
  @Post('sessions/:id/end')
  @TakesForm()
  @Throttle(30)
  async endOther(
    @Param('id') id: string,
    @Body() form: Form,
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const session = await this.findSession(parsePathId(id), user, localizeRequest(request));
    if (session) {
      const rejection = await this.findPasswordRejection(form, user, { request, reply }, session);
      if (rejection) return rejection;
      await this.signIns.endSession(by, user, session.id);
    }
    return redirectTo('/app/account?done=session');
  }

  /** Finds another session of the user that has not ended. */
  private async findSession(
    id: number,
    user: SignedInUser,
    localization: Localization,
  ): Promise<ListedSession | undefined> {
    const sessions = await this.listSessions(user, localization);
    return sessions.find((session) => session.id === id && !session.isCurrent);
  }

  /** Asks whether to end a session, or all others, and for the password. */
  private askToEnd(
    localization: Localization,
    session: ListedSession | null,
    passwordErrors: readonly string[],
  ): PageResult {
    const { account: t, back } = localization.t.signIn;
    return askToConfirm({
      question: session ? t.askEndSession : t.askEndSessions,
      about: session?.browser ?? '',
      text: session ? t.askEndSessionText : t.askEndSessionsText,
      yes: session ? t.endSession : t.endSessions,
      no: back,
      passwordErrors,
      back: '/app/account#sessions',
    });
  }

  /** Requires the password before sessions are ended. @returns the page with the error; undefined: it is right */
  private async findPasswordRejection(
    form: Form,
    user: SignedInUser,
    exchange: HttpExchange,
    session: ListedSession | null,
  ): Promise<PageResult | undefined> {
    const password = form['current_password'];
    const errors = await this.reauthentication.findPasswordErrors(user, password, exchange.request);
    if (errors.length > 0) {
      return this.askToEnd(localizeRequest(exchange.request), session, errors);
    }
    await this.reauthentication.renewSession(user, exchange);
    return undefined;
  }

  /** Lists the sessions, with times in the time zone of the user's first store. */
  private async listSessions(
    user: SignedInUser,
    { t, locale }: Localization,
  ): Promise<ListedSession[]> {
    const { minute } = createTimeFormats(locale, await this.sessions.findTimeZone(user.userId));
    const sessions = await this.sessions.list(user);
    return sessions.map(({ id, browser, createdAt, seenAt }) => ({
      id,
      browser: describeBrowser(browser, t.signIn.account),
      isCurrent: id === user.sessionId,
      begunOn: minute(createdAt),
      lastSeen: minute(seenAt),
    }));
  }

  private async showErrors(
    error: unknown,
    localization: Localization,
    user: SignedInUser,
    state: Pick<Partial<AccountView>, 'form' | 'values'>,
  ): Promise<PageResult> {
    const errors = describeRejection(error, localization);
    return this.showAccount(localization, user, { ...state, errors });
  }

  private async showAccount(
    localization: Localization,
    user: SignedInUser,
    { errors, ...state }: Partial<AccountView> & Rejectable,
  ): Promise<PageResult> {
    const factor = await this.secondFactors.findState(user.userId);
    return showPage({
      view: accountView,
      title: localization.t.signIn.account.title,
      errors,
      width: 'form',
      breadcrumb: { path: '/app', text: localization.t.console.stores },
      data: {
        flash: '',
        form: '',
        values: { name: user.name, email: user.email },
        canChangeEmail: this.addresses.canBeChanged,
        emailHint: this.addresses.describeChange(localization),
        minPasswordLength: MIN_PASSWORD_LENGTH,
        hasSecondFactor: factor.state === 'on',
        codesLeftCount: factor.state === 'on' ? factor.codesLeft : 0,
        sessions: await this.listSessions(user, localization),
        ...state,
      },
    });
  }
}

function describeBrowser(browser: Browser | null, t: Translations['signIn']['account']): string {
  return browser === null
    ? t.unknownBrowser
    : t.browserOn({ browser: browser.name, system: browser.system });
}
