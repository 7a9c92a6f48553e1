import { Body, Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isSameAddress } from '#kernel/email-address.js';
import { NotFoundError } from '#kernel/errors.js';
import { readSource } from '#http/caller.js';
import { TakesForm, type Form } from '#http/body-kinds.js';
import { Throttle } from '#http/throttle.js';
import { AcceptInvitation, type Invitee } from '#identity/invitation.commands.js';
import { Members, type InvitationPreview } from '#identity/members.service.js';
import { MIN_PASSWORD_LENGTH } from '#identity/password.js';
import { SignIns } from '#identity/sign-ins.service.js';
import { WithoutSession, type ConsoleRequest } from '#pages/current-user.js';
import { PageError } from '#pages/page-error.js';
import { Pages } from '#pages/pages.service.js';
import { loadView } from '#pages/view.js';
import { NO_FORM_ERRORS, toFormErrors, type FormErrors } from '#pages/form-errors.js';
import type { Localization } from '#translations/translations.js';
import { SessionCookies } from '#sign-in/session-cookies.service.js';
import { readFormText } from '#sign-in/form-text.js';

type InvitationView = InvitationPreview & {
  secret: string;
  /** Whether the visitor is signed in with the invited address, with another one, or not at all. */
  signedInAs: 'invited' | 'other' | 'nobody';
  minPasswordLength: number;
  name: string;
  formErrors: FormErrors;
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
    private readonly pages: Pages,
  ) {}

  @Get()
  @WithoutSession()
  @Throttle(30)
  async show(
    @Param('secret') secret: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.send(request, reply, secret, { name: '', formErrors: NO_FORM_ERRORS });
  }

  @Post()
  @WithoutSession()
  @TakesForm()
  @Throttle(30)
  async accept(
    @Param('secret') secret: string,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
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
      await this.pages.redirect(reply, `${start}/${accepted.accountId}`);
    } catch (error) {
      const localization = this.pages.localize(request);
      if (error instanceof NotFoundError) throw createLinkError(localization);
      const formErrors = toFormErrors(error, localization);
      await this.send(request, reply, secret, { name, formErrors });
    }
  }

  private async send(
    request: FastifyRequest,
    reply: FastifyReply,
    secret: string,
    formState: Pick<InvitationView, 'name' | 'formErrors'>,
  ): Promise<void> {
    const invitation = await this.members.findInvitation(secret);
    const localization = this.pages.localize(request);
    if (!invitation) throw createLinkError(localization);
    const { signedIn } = request as ConsoleRequest;
    const isSameUser = signedIn !== undefined && isSameAddress(signedIn.email, invitation.email);
    await this.pages.send(request, reply, {
      view,
      title: localization.t.console.invitation.title({ store: invitation.store }),
      data: {
        ...invitation,
        ...formState,
        secret,
        signedInAs: signedIn ? (isSameUser ? 'invited' : 'other') : 'nobody',
        minPasswordLength: MIN_PASSWORD_LENGTH,
      },
      status: formState.formErrors === NO_FORM_ERRORS ? 200 : 422,
      width: 'narrow',
    });
  }
}

function createLinkError({ t }: Localization): PageError {
  const { gone, goneWhy } = t.console.invitation;
  return new PageError(404, gone, goneWhy);
}
