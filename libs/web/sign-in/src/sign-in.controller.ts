import { Body, Controller, Get, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { TakesForm, type Form } from '#http/body-kinds.js';
import { WorksInMaintenance } from '#http/route-access.js';
import { Throttle } from '#http/throttle.js';
import {
  SignIns,
  type SignInOutcome,
  type NotifyOfWrongCodes,
} from '#identity/sign-ins.service.js';
import {
  ConsoleWriter,
  CurrentUser,
  WithoutSession,
  type ConsoleRequest,
  type SignedInUser,
} from '#pages/current-user.js';
import type { AuditedWriter } from '#event-store/commands/audited-writes.service.js';
import { MailOutbox } from '#messages/mail-outbox.service.js';
import type { Localization } from '#translations/translations.js';
import { FORGET_PERSON, loadAsset } from '#pages/assets.js';
import { parseReturnPath, toReturnQuery } from '#pages/own-site.js';
import { Pages } from '#pages/pages.service.js';
import { loadView } from '#pages/view.js';
import { SessionCookies } from './session-cookies.service.js';
import { readFormText, formatWait } from './form-text.js';
import { findUserTranslations } from './user-translations.service.js';
import { StartPaths } from './start-paths.service.js';
import { createWrongCodesMail } from './wrong-codes-mail.js';

type SignInView = {
  email: string;
  returnTo: string;
  failure: string;
  done: string;
  /** Whether to offer the sign-in of a company. */
  hasCompanySignIn: boolean;
};

const signInView = loadView<SignInView>(import.meta.url, './views/sign-in.eta');
const codeView = loadView<{ failure: string; returnTo: string }>(
  import.meta.url,
  './views/code.eta',
);

const SCRIPTS = [FORGET_PERSON, loadAsset(import.meta.url, './assets/sign-in.js')];

/** Per IP address, which a whole shop may share. */
const PER_ADDRESS = 30;

/** Names the notices about the previous page, by the parameter `done`. */
const DONE = new Map([
  ['signed_out', 'signedOut'],
  ['password', 'passwordSet'],
  ['late', 'late'],
] as const);

@Controller('app')
export class SignInController {
  constructor(
    private readonly signIns: SignIns,
    private readonly sessionCookies: SessionCookies,
    private readonly startPaths: StartPaths,
    private readonly pages: Pages,
    private readonly outbox: MailOutbox,
    private readonly config: Config,
  ) {}

  @Get('sign-in')
  @WithoutSession()
  async show(
    @Query() query: Record<string, string | undefined>,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const returnTo = parseReturnPath(query['return_to']);
    if ((request as ConsoleRequest).signedIn) return this.pages.redirect(reply, returnTo);
    const notice = DONE.get(String(query['done']) as 'late');
    const done = notice === undefined ? '' : this.pages.localize(request).t.signIn.signIn[notice];
    await this.showForm(request, reply, { email: '', returnTo, failure: '', done });
  }

  @Post('sign-in')
  @WorksInMaintenance()
  @WithoutSession()
  @TakesForm()
  @Throttle(PER_ADDRESS)
  async signIn(
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const email = readFormText(form, 'email');
    const returnTo = parseReturnPath(form['return_to']);
    const visitor = this.sessionCookies.readVisitor(request);
    const outcome = await this.signIns.signInWithPassword(visitor, email, form['password'] ?? '');
    if (outcome.kind === 'in') {
      this.sessionCookies.set(reply, outcome);
      return this.pages.redirect(reply, await this.startPaths.find(outcome.session, returnTo));
    }
    if (outcome.kind === 'code') {
      this.sessionCookies.setPending(reply, outcome.session);
      return this.pages.redirect(reply, `/app/sign-in/code${toReturnQuery(returnTo)}`);
    }
    const failure = describeFailure(outcome, this.pages.localize(request));
    await this.showForm(request, setFailureStatus(reply, outcome), {
      email,
      returnTo,
      failure,
      done: '',
    });
  }

  @Get('sign-in/code')
  @WithoutSession()
  async showCode(
    @Query('return_to') returnTo: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.showCodeForm(request, reply, { failure: '', returnTo: parseReturnPath(returnTo) });
  }

  @Post('sign-in/code')
  @WorksInMaintenance()
  @WithoutSession()
  @TakesForm()
  @Throttle(PER_ADDRESS)
  async enterCode(
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const returnTo = parseReturnPath(form['return_to']);
    const visitor = this.sessionCookies.readVisitor(request);
    const outcome = await this.signIns.signInWithCode(
      visitor,
      readFormText(form, 'code'),
      this.notifyOfWrongCodes,
    );
    if (outcome === null) return this.pages.redirect(reply, '/app/sign-in?done=late');
    if (outcome.kind === 'in') {
      this.sessionCookies.set(reply, outcome);
      return this.pages.redirect(reply, await this.startPaths.find(outcome.session, returnTo));
    }
    const failure = describeCodeFailure(outcome, this.pages.localize(request));
    await this.showCodeForm(request, setFailureStatus(reply, outcome), { failure, returnTo });
  }

  @Post('sign-out')
  @WorksInMaintenance()
  @TakesForm()
  async signOut(
    @CurrentUser() user: SignedInUser,
    @ConsoleWriter() by: AuditedWriter,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.signIns.signOut(by, user);
    this.sessionCookies.clear(reply);
    await this.pages.redirect(reply, '/app/sign-in?done=signed_out');
  }

  private readonly notifyOfWrongCodes: NotifyOfWrongCodes = async (manager, wrong) => {
    if (this.config.mail === null) return;
    const localization = await findUserTranslations(manager, wrong.userId);
    const mail = createWrongCodesMail(wrong, this.config.publicUrl, localization);
    await this.outbox.add(manager, [mail]);
  };

  private async showForm(
    request: FastifyRequest,
    reply: FastifyReply,
    data: Omit<SignInView, 'hasCompanySignIn'>,
  ): Promise<void> {
    await this.pages.send(request, reply, {
      view: signInView,
      title: this.pages.localize(request).t.signIn.signIn.title,
      data: { ...data, hasCompanySignIn: this.config.oidc !== null },
      scripts: SCRIPTS,
      status: reply.statusCode,
      width: 'narrow',
    });
  }

  private async showCodeForm(
    request: FastifyRequest,
    reply: FastifyReply,
    data: { failure: string; returnTo: string },
  ): Promise<void> {
    await this.pages.send(request, reply, {
      view: codeView,
      title: this.pages.localize(request).t.signIn.code.title,
      data,
      status: reply.statusCode,
      width: 'narrow',
    });
  }
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

function setFailureStatus(reply: FastifyReply, outcome: SignInOutcome): FastifyReply {
  if (outcome.kind !== 'wait') return reply.status(422);
  return reply.status(429).header('retry-after', outcome.seconds);
}
