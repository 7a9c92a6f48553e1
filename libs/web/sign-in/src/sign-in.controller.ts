import { Body, Controller, Get, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#kernel/config.js';
import { TakesForm, type Form } from '#http/form-bodies.js';
import { Throttle } from '#http/throttle.js';
import { SignIns, type SignInOutcome, type TellOfWrongCodes } from '#identity/sign-ins.service.js';
import {
  ConsoleWriter,
  CurrentUser,
  WithoutSession,
  type ConsoleRequest,
  type SignedIn,
} from '#pages/current-user.js';
import type { PlainWriter } from '#event-store/plain-writes.service.js';
import { MailOutbox } from '#messages/mail-outbox.service.js';
import { ownPath } from '#pages/own-site.js';
import { Pages } from '#pages/pages.service.js';
import { viewOf } from '#pages/view.js';
import { Doors } from './doors.service.js';
import { textIn, waitText } from './form-text.js';
import { wrongCodesMail } from './wrong-codes-mail.js';

type SignInView = {
  email: string;
  returnTo: string;
  fault: string;
  done: string;
  /** Companies sign in elsewhere. */
  company: boolean;
};

const signIn = viewOf<SignInView>(import.meta.url, './views/sign-in.eta');
const code = viewOf<{ fault: string; returnTo: string }>(import.meta.url, './views/code.eta');

/** For one address; a whole shop may share one. */
const PER_ADDRESS = { default: { limit: 30, ttl: 60_000 } };

/** What a page before this one has done. */
const DONE = new Map([
  ['signed_out', 'You are signed out.'],
  ['password', 'Your new password is set. Please sign in with it.'],
  ['late', 'That took too long. Please sign in again.'],
]);

@Controller('app')
export class SignInController {
  constructor(
    private readonly signIns: SignIns,
    private readonly doors: Doors,
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
    const returnTo = ownPath(query['return_to']);
    if ((request as ConsoleRequest).signedIn) return this.pages.redirect(reply, returnTo);
    const done = DONE.get(String(query['done'])) ?? '';
    await this.showForm(request, reply, { email: '', returnTo, fault: '', done });
  }

  @Post('sign-in')
  @WithoutSession()
  @TakesForm()
  @Throttle(PER_ADDRESS)
  async signIn(
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const email = textIn(form, 'email');
    const returnTo = ownPath(form['return_to']);
    const visitor = this.doors.visitorOf(request);
    const outcome = await this.signIns.withPassword(visitor, email, form['password'] ?? '');
    if (outcome.kind === 'in') {
      this.doors.letIn(reply, outcome);
      return this.pages.redirect(reply, returnTo);
    }
    if (outcome.kind === 'code') {
      this.doors.letWait(reply, outcome.session);
      return this.pages.redirect(reply, `/app/sign-in/code${queryOf(returnTo)}`);
    }
    const fault = faultOf(outcome, 'E-mail address or password is wrong.');
    await this.showForm(request, waiting(reply, outcome), { email, returnTo, fault, done: '' });
  }

  @Get('sign-in/code')
  @WithoutSession()
  async showCode(
    @Query('return_to') returnTo: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.showCodeForm(request, reply, { fault: '', returnTo: ownPath(returnTo) });
  }

  @Post('sign-in/code')
  @WithoutSession()
  @TakesForm()
  @Throttle(PER_ADDRESS)
  async enterCode(
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const returnTo = ownPath(form['return_to']);
    const visitor = this.doors.visitorOf(request);
    const outcome = await this.signIns.withCode(visitor, textIn(form, 'code'), this.tell);
    if (outcome === null) return this.pages.redirect(reply, '/app/sign-in?done=late');
    if (outcome.kind === 'in') {
      this.doors.letIn(reply, outcome);
      return this.pages.redirect(reply, returnTo);
    }
    const fault = codeFaultOf(outcome);
    await this.showCodeForm(request, waiting(reply, outcome), { fault, returnTo });
  }

  @Post('sign-out')
  @TakesForm()
  async signOut(
    @CurrentUser() user: SignedIn,
    @ConsoleWriter() by: PlainWriter,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.signIns.signOut(by, user);
    this.doors.letOut(reply);
    await this.pages.redirect(reply, '/app/sign-in?done=signed_out');
  }

  private readonly tell: TellOfWrongCodes = async (manager, wrong) => {
    if (this.config.mail === null) return;
    await this.outbox.addWithin(manager, [wrongCodesMail(wrong, this.config.publicUrl)]);
  };

  private async showForm(
    request: FastifyRequest,
    reply: FastifyReply,
    data: Omit<SignInView, 'company'>,
  ): Promise<void> {
    await this.pages.send(request, reply, {
      view: signIn,
      title: 'Sign in',
      data: { ...data, company: this.config.oidc !== null },
      status: reply.statusCode,
      width: 'narrow',
    });
  }

  private async showCodeForm(
    request: FastifyRequest,
    reply: FastifyReply,
    data: { fault: string; returnTo: string },
  ): Promise<void> {
    await this.pages.send(request, reply, {
      view: code,
      title: 'Enter your code',
      data,
      status: reply.statusCode,
      width: 'narrow',
    });
  }
}

function faultOf(outcome: SignInOutcome, wrong: string): string {
  if (outcome.kind !== 'wait') return wrong;
  return `That was wrong too often. Please wait ${waitText(outcome.seconds)} and try again, or set a new password.`;
}

function codeFaultOf(outcome: SignInOutcome): string {
  if (outcome.kind === 'locked') {
    return 'There were too many wrong codes. Please enter one of your recovery codes, or set a new password.';
  }
  if (outcome.kind !== 'wait') return 'This code is wrong, or was used before.';
  return `There were too many wrong codes. Please wait ${waitText(outcome.seconds)} and try again, or enter one of your recovery codes.`;
}

function waiting(reply: FastifyReply, outcome: SignInOutcome): FastifyReply {
  if (outcome.kind !== 'wait') return reply.status(422);
  return reply.status(429).header('retry-after', outcome.seconds);
}

function queryOf(returnTo: string): string {
  return returnTo === '/app' ? '' : `?return_to=${encodeURIComponent(returnTo)}`;
}
