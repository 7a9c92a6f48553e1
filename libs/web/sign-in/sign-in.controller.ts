import { Body, Controller, Get, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { getNow } from '#platform/kernel/clock.js';
import { TakesForm, TakesLargeForm, type Form } from '#platform/http/body-kinds.js';
import { WorksInMaintenance } from '#platform/http/route-access.js';
import { Throttle } from '#platform/http/throttle.js';
import {
  SignIns,
  type SignInOutcome,
  type NotifyOfWrongCodes,
} from '#identity/sign-ins.service.js';
import { Sessions } from '#identity/sessions.service.js';
import {
  ConsoleWriter,
  CurrentUser,
  TASK_PATHS,
  WithoutSession,
  type ConsoleRequest,
  type SignedInUser,
  Localized,
} from '#web/pages/current-user.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { MailOutbox } from '#outbound/messages/mail-outbox.service.js';
import type { Localization } from '#translations/translations.js';
import { FORGET_PERSON, loadAsset } from '#web/pages/assets.js';
import { parseReturnPath, toReturnQuery } from '#web/pages/own-site.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import { loadView } from '#web/pages/view.js';
import { KEPT_FORM_FIELD, MAX_KEPT_FORM_BYTES } from '#web/pages/kept-form.js';
import { KeptForms } from '#web/pages/kept-forms.service.js';
import { passKeptFormOn, type PageResult, redirectTo, showPage } from '#web/pages/page-results.js';
import { localizeRequest } from '#web/pages/localize.js';
import { SessionCookies } from './session-cookies.service.js';
import { readFormText, formatWait } from './form-text.js';
import { findUserTranslations } from './user-translations.service.js';
import { StartPaths } from './start-paths.service.js';
import { createWrongCodesMail } from './wrong-codes-mail.js';

type SignInView = {
  email: string;
  returnTo: string;
  failure: string;
  flash: string;
  /** A form that its user gets back after signing in, sealed; empty: there is none. */
  sealedForm: string;
  /** Whether to offer the sign-in of a company. */
  hasCompanySignIn: boolean;
};

const signInView = loadView<SignInView>(import.meta.url, './views/sign-in.eta');
type CodeView = Pick<SignInView, 'failure' | 'returnTo' | 'sealedForm'>;
const codeView = loadView<CodeView>(import.meta.url, './views/code.eta');

const SCRIPTS = [FORGET_PERSON, loadAsset(import.meta.url, './assets/sign-in.js')];

/** Per IP address, which a whole shop may share. */
const PER_ADDRESS = 30;

const LOOPBACK = /^(127\.|::1$|::ffff:127\.)/;

@Controller('app')
export class SignInController {
  constructor(
    private readonly signIns: SignIns,
    private readonly sessionCookies: SessionCookies,
    private readonly startPaths: StartPaths,
    private readonly outbox: MailOutbox,
    private readonly sessions: Sessions,
    private readonly keptForms: KeptForms,
    private readonly config: Config,
  ) {}

  @Get('sign-in')
  @WithoutSession()
  async show(
    @Query() query: Record<string, string | undefined>,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const returnTo = parseReturnPath(query['return_to']);
    if ((request as ConsoleRequest).signedIn) return redirectTo(returnTo);
    const localization = localizeRequest(request);
    const { signedOut, passwordSet, late } = localization.t.signIn.signIn;
    const messages = { signed_out: signedOut, password: passwordSet, late };
    const flash = findFlashMessage(query['done'], messages);
    return this.showForm(localization, { email: '', returnTo, failure: '', flash, sealedForm: '' });
  }

  /** Signs in by the link that `npm start` prints, on the same machine alone. */
  @Get('sign-in/link')
  @WithoutSession()
  @Throttle(PER_ADDRESS)
  async signInByLink(
    @Query('token') token: string | undefined,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const visitor = this.sessionCookies.readVisitor(request);
    const isLocal = visitor.ipAddress !== undefined && LOOPBACK.test(visitor.ipAddress);
    const outcome = isLocal && (await this.signIns.signInByLink(visitor, String(token)));
    if (!outcome) return redirectTo('/app/sign-in?done=late');
    if (outcome.kind === 'code') {
      this.sessionCookies.setPending(reply, outcome.session);
      return redirectTo('/app/sign-in/code');
    }
    this.sessionCookies.set(reply, outcome);
    return redirectTo(await this.startPaths.find(outcome.session, '/app'));
  }

  /** Asks whoever has sent a form after their session had ended to sign in, and carries it meanwhile. */
  @Post('sign-in/kept')
  @WorksInMaintenance()
  @WithoutSession()
  @TakesLargeForm(MAX_KEPT_FORM_BYTES)
  @Throttle(PER_ADDRESS)
  async showForKeptForm(@Body() form: Form, @Req() request: FastifyRequest): Promise<PageResult> {
    const { signedIn, task } = request as ConsoleRequest;
    const sealedForm = form[KEPT_FORM_FIELD] ?? '';
    if (task) return showTask(task, sealedForm, localizeRequest(request));
    // In another tab, meanwhile.
    if (signedIn) return this.findKeptForm(signedIn, sealedForm, request) ?? redirectTo('/app');
    const data = { email: '', returnTo: '/app', failure: '', flash: '', sealedForm };
    return this.showForm(localizeRequest(request), data);
  }

  @Post('sign-in')
  @WorksInMaintenance()
  @WithoutSession()
  @TakesLargeForm(MAX_KEPT_FORM_BYTES)
  @Throttle(PER_ADDRESS)
  async signIn(
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const email = readFormText(form, 'email');
    const returnTo = parseReturnPath(form['return_to']);
    const sealedForm = form[KEPT_FORM_FIELD] ?? '';
    const visitor = this.sessionCookies.readVisitor(request);
    const outcome = await this.signIns.signInWithPassword(visitor, email, form['password'] ?? '');
    if (outcome.kind === 'in') {
      this.sessionCookies.set(reply, outcome);
      return this.start(outcome.session, { sealedForm, returnTo }, request);
    }
    if (outcome.kind === 'code') {
      this.sessionCookies.setPending(reply, outcome.session);
      if (sealedForm !== '') {
        return this.showCodeForm(localizeRequest(request), { failure: '', returnTo, sealedForm });
      }
      return redirectTo(`/app/sign-in/code${toReturnQuery(returnTo)}`);
    }
    const localization = localizeRequest(request);
    const failure = describeFailure(outcome, localization);
    const data = { email, returnTo, failure, flash: '', sealedForm };
    return this.showForm(localization, data, setRetryAfter(reply, outcome));
  }

  @Get('sign-in/code')
  @WithoutSession()
  async showCode(
    @Query('return_to') returnTo: string | undefined,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const data = { failure: '', returnTo: parseReturnPath(returnTo), sealedForm: '' };
    return this.showCodeForm(localization, data);
  }

  @Post('sign-in/code')
  @WorksInMaintenance()
  @WithoutSession()
  @TakesLargeForm(MAX_KEPT_FORM_BYTES)
  @Throttle(PER_ADDRESS)
  async enterCode(
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const returnTo = parseReturnPath(form['return_to']);
    const sealedForm = form[KEPT_FORM_FIELD] ?? '';
    const visitor = this.sessionCookies.readVisitor(request);
    const outcome = await this.signIns.signInWithCode(
      visitor,
      readFormText(form, 'code'),
      this.notifyOfWrongCodes,
    );
    const localization = localizeRequest(request);
    if (outcome === null && sealedForm !== '') {
      const { late } = localization.t.signIn.signIn;
      return this.showForm(localization, {
        email: '',
        returnTo,
        failure: late,
        flash: '',
        sealedForm,
      });
    }
    if (outcome === null) return redirectTo('/app/sign-in?done=late');
    if (outcome.kind === 'in') {
      this.sessionCookies.set(reply, outcome);
      return this.start(outcome.session, { sealedForm, returnTo }, request);
    }
    const data = { failure: describeCodeFailure(outcome, localization), returnTo, sealedForm };
    return this.showCodeForm(localization, data, setRetryAfter(reply, outcome));
  }

  @Post('sign-out')
  @WorksInMaintenance()
  @TakesForm()
  @Throttle(60)
  async signOut(
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    await this.signIns.signOut(by, user);
    this.sessionCookies.clear(reply);
    return redirectTo('/app/sign-in?done=signed_out');
  }

  /** Leads whoever has signed in to the form that was kept for them, or else to the page that they came for. */
  private async start(
    session: string,
    { sealedForm, returnTo }: Pick<SignInView, 'sealedForm' | 'returnTo'>,
    request: FastifyRequest,
  ): Promise<PageResult> {
    const signedIn = sealedForm === '' ? undefined : await this.sessions.find(session);
    if (signedIn?.task) return showTask(signedIn.task, sealedForm, localizeRequest(request));
    if (signedIn) {
      const form = this.findKeptForm(signedIn, sealedForm, request);
      if (form) return form;
    }
    return redirectTo(await this.startPaths.find(session, returnTo));
  }

  /** Leads back to a kept form. @returns undefined: there is none for this user */
  private findKeptForm(
    { userId }: SignedInUser,
    sealedForm: string,
    request: FastifyRequest,
  ): PageResult | undefined {
    const form = this.keptForms.open(sealedForm, userId, getNow());
    if (!form) return undefined;
    const { formKept: title, backToForm: button } = localizeRequest(request).t.forms;
    const { path: action, isUpload } = form;
    return passKeptFormOn({ sealedForm, action, isUpload, title, button });
  }

  private readonly notifyOfWrongCodes: NotifyOfWrongCodes = async (manager, wrong) => {
    if (this.config.mail === null) return;
    const localization = await findUserTranslations(manager, wrong.userId);
    const mail = createWrongCodesMail(wrong, this.config.publicUrl, localization);
    await this.outbox.add(manager, [mail]);
  };

  private async showForm(
    localization: Localization,
    data: Omit<SignInView, 'hasCompanySignIn'>,
    status = 200,
  ): Promise<PageResult> {
    return showPage({
      view: signInView,
      title: localization.t.signIn.signIn.title,
      data: { ...data, hasCompanySignIn: this.config.oidc !== null },
      scripts: SCRIPTS,
      status,
      width: 'narrow',
    });
  }

  private async showCodeForm(
    localization: Localization,
    data: CodeView,
    status = 200,
  ): Promise<PageResult> {
    return showPage({
      view: codeView,
      title: localization.t.signIn.code.title,
      data,
      status,
      width: 'narrow',
    });
  }
}

/** Leads whoever has to do something else first there, in another tab, and then to the form that was kept for them. */
function showTask(
  task: keyof typeof TASK_PATHS,
  sealedForm: string,
  { t: { signIn, forms } }: Localization,
): PageResult {
  const { firstPassword, secondFactor } = signIn;
  const page =
    task === 'password'
      ? { title: firstPassword.title, text: firstPassword.why, button: firstPassword.submit }
      : { title: secondFactor.title, text: secondFactor.required, button: secondFactor.setUp };
  return passKeptFormOn({
    sealedForm,
    action: '/app/sign-in/kept',
    isUpload: false,
    title: page.title,
    button: forms.backToForm,
    task: { path: TASK_PATHS[task], ...page },
  });
}

function describeFailure(outcome: SignInOutcome, localization: Localization): string {
  const { signIn } = localization.t.signIn;
  if (outcome.kind === 'expired') return signIn.expired;
  if (outcome.kind !== 'wait') return signIn.wrong;
  return signIn.tooMany({ wait: formatWait(outcome.seconds, localization) });
}

function describeCodeFailure(outcome: SignInOutcome, localization: Localization): string {
  const { code } = localization.t.signIn;
  if (outcome.kind === 'locked') return code.locked;
  if (outcome.kind !== 'wait') return code.wrong;
  return code.tooMany({ wait: formatWait(outcome.seconds, localization) });
}

/** Says when to try again. @returns the status of the failure */
function setRetryAfter(reply: FastifyReply, outcome: SignInOutcome): number {
  if (outcome.kind !== 'wait') return 422;
  reply.header('retry-after', outcome.seconds);
  return 429;
}
