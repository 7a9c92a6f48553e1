import { Body, Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isSameAddress } from '#platform/kernel/email-address.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { readSource } from '#platform/http/caller.js';
import { TakesForm, type Form } from '#platform/http/body-kinds.js';
import { Throttle } from '#platform/http/throttle.js';
import { AcceptInvitation, type Invitee } from '#identity/invitation.commands.js';
import { Members, type InvitationPreview } from '#identity/members.service.js';
import { MIN_PASSWORD_LENGTH } from '#identity/password.js';
import { SignIns } from '#identity/sign-ins.service.js';
import { WithoutSession, type ConsoleRequest } from '#web/pages/current-user.js';
import { PageError } from '#web/pages/page-error.js';
import { loadView } from '#web/pages/view.js';
import { toFormErrors, type FormErrors } from '#web/pages/form-errors.js';
import type { Localization } from '#translations/translations.js';
import { SessionCookies } from '#web/sign-in/session-cookies.service.js';
import { readFormText } from '#web/sign-in/form-text.js';
import { type PageResult, redirectTo, showPage } from '#web/pages/page-results.js';
import { localizeRequest } from '#web/pages/localize.js';

type InvitationView = InvitationPreview & {
  secret: string;
  /** Whether the visitor is signed in with the invited address, with another one, or not at all. */
  signedInAs: 'invited' | 'other' | 'nobody';
  minPasswordLength: number;
  name: string;
};

const view = loadView<InvitationView>(import.meta.url, './views/invitation.eta');

/** Serves the link of an invitation. */
@Controller('app/invitations/:secret')
export class InvitationController {
  constructor(
    private readonly bus: CommandBus,
    private readonly members: Members,
    private readonly signIns: SignIns,
    private readonly sessionCookies: SessionCookies,
  ) {}

  @Get()
  @WithoutSession()
  @Throttle(30)
  async show(@Param('secret') secret: string, @Req() request: FastifyRequest): Promise<PageResult> {
    return this.render(request, secret, '');
  }

  @Post()
  @WithoutSession()
  @TakesForm()
  @Throttle(30)
  async accept(
    @Param('secret') secret: string,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const { signedIn } = request as ConsoleRequest;
    const source = readSource(request as ConsoleRequest);
    const name = readFormText(form, 'name');
    const acceptance: Invitee = signedIn
      ? { userId: signedIn.userId }
      : { name, password: form['password'] ?? '' };
    const invitation = await this.members.findInvitation(secret);
    try {
      const accepted = await this.bus.execute(new AcceptInvitation(source, secret, acceptance));
      if (!signedIn) {
        const visitor = this.sessionCookies.readVisitor(request);
        const signIn = await this.signIns.signInInvited(visitor, accepted.userId);
        this.sessionCookies.set(reply, signIn);
      }
      const start = invitation?.role === 'staff' ? '/counter' : '/app/stores';
      return redirectTo(`${start}/${accepted.accountId}`);
    } catch (error) {
      const localization = localizeRequest(request);
      if (error instanceof NotFoundError) throw createLinkError(localization);
      return this.render(request, secret, name, toFormErrors(error, localization));
    }
  }

  private async render(
    request: FastifyRequest,
    secret: string,
    name: string,
    errors?: FormErrors,
  ): Promise<PageResult> {
    const invitation = await this.members.findInvitation(secret);
    const localization = localizeRequest(request);
    if (!invitation) throw createLinkError(localization);
    const { signedIn } = request as ConsoleRequest;
    const isSameUser = signedIn !== undefined && isSameAddress(signedIn.email, invitation.email);
    return showPage({
      view,
      title: localization.t.console.invitation.title({ store: invitation.store }),
      data: {
        ...invitation,
        name,
        secret,
        signedInAs: signedIn ? (isSameUser ? 'invited' : 'other') : 'nobody',
        minPasswordLength: MIN_PASSWORD_LENGTH,
      },
      errors,
      width: 'narrow',
    });
  }
}

function createLinkError({ t }: Localization): PageError {
  const { gone, goneWhy } = t.console.invitation;
  return new PageError(404, gone, goneWhy);
}
