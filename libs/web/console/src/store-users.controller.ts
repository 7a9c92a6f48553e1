import { Body, Controller, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { EntityManager } from 'typeorm';
import { Config } from '#configuration/config.js';
import { NotFoundError, RateLimitedError, RejectedError } from '#kernel/errors.js';
import type { AuditedWriter } from '#event-store/commands/audited-writes.service.js';
import { TakesForm, type Form } from '#http/form-bodies.js';
import { parsePathId } from '#http/path.js';
import { Throttle } from '#http/throttle.js';
import {
  InviteUser,
  WithdrawInvitation,
  type CreatedInvitation,
} from '#identity/invitation.commands.js';
import { INVITATION_DAYS } from '#identity/invitation.js';
import { ChangeRole, RemoveMember } from '#identity/member.commands.js';
import { Members, type Member } from '#identity/members.service.js';
import { isRole, ROLES, type Role } from '#identity/roles.js';
import { MailOutbox } from '#messages/mail-outbox.service.js';
import {
  ConsoleWriter,
  CurrentStore,
  CurrentUser,
  RequiresOperation,
  type EnteredStore,
  type SignedInUser,
} from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { loadView } from '#pages/view.js';
import {
  toFormErrors,
  NO_FORM_ERRORS,
  createTooManyMailsErrors,
  type FormErrors,
} from './form-errors.js';
import { createInvitationMail } from './invitation-mail.js';
import { ROLE_OPTIONS, ROLE_LABELS } from './role-labels.js';
import { StoreTimes } from './store-times.service.js';

type UsersView = {
  members: (Member & { roleText: string; isSelf: boolean; isLastOwner: boolean })[];
  invitations: { id: number; email: string; roleText: string; invitedBy: string; until: string }[];
  roles: { value: Role; text: string; hint: string }[];
  roleOptions: { value: string; text: string }[];
  values: { email: string; role: Role };
  formErrors: FormErrors;
  done: string;
};

const view = loadView<UsersView>(import.meta.url, './views/users.eta');
const linkView = loadView<{ email: string; link: string; days: number }>(
  import.meta.url,
  './views/invitation-link.eta',
);

const PER_MINUTE = { default: { limit: 30, ttl: 60_000 } };

const DONE = new Map([
  ['invited', `The invitation is on its way. Its link works for ${INVITATION_DAYS} days.`],
  ['withdrawn', 'The invitation is withdrawn.'],
  ['role', 'The role is changed.'],
  ['removed', 'The user is removed from this store.'],
]);

@Controller('app/stores/:account_id/users')
export class StoreUsersController {
  constructor(
    private readonly bus: CommandBus,
    private readonly members: Members,
    private readonly outbox: MailOutbox,
    private readonly times: StoreTimes,
    private readonly pages: Pages,
    private readonly config: Config,
  ) {}

  @Get()
  @RequiresOperation('users.read')
  async show(
    @Query('done') done: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentUser() user: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<void> {
    await this.send(request, reply, user, store, {
      done: DONE.get(String(done)) ?? '',
    });
  }

  @Post('invitations')
  @RequiresOperation('users.invite')
  @TakesForm()
  @Throttle(PER_MINUTE)
  async invite(
    @Body() form: Form,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentUser() user: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<void> {
    const { email = '', role: roleParameter = '' } = form;
    const role = isRole(roleParameter) ? roleParameter : 'staff';
    const send = async (manager: EntityManager, invited: CreatedInvitation) => {
      const mail = createInvitationMail(
        { ...invited, role, store, inviter: user.name },
        this.config,
      );
      const seconds = await this.outbox.addForStranger(manager, mail);
      if (seconds !== null) throw new RateLimitedError(seconds);
    };
    let invited: CreatedInvitation;
    try {
      invited = await this.bus.execute(
        new InviteUser(
          by,
          user.userId,
          store.id,
          email,
          role,
          this.config.mail === null ? null : send,
        ),
      );
    } catch (error) {
      const values = { email, role };
      if (error instanceof RateLimitedError) {
        const formErrors = createTooManyMailsErrors(error.retryAfterSeconds);
        reply.header('retry-after', error.retryAfterSeconds);
        return this.send(request, reply, user, store, { values, formErrors }, 429);
      }
      return this.send(request, reply, user, store, { values, formErrors: toFormErrors(error) });
    }
    if (this.config.mail !== null) return this.redirectWithNotice(reply, store, 'invited');
    // Without e-mail, the inviting user has to pass on the link, which is shown this once.
    const link = `${this.config.publicUrl}/app/invitations/${invited.secret}`;
    await this.pages.send(request, reply, {
      view: linkView,
      title: 'Send this link',
      data: { email: invited.email, link, days: INVITATION_DAYS },
      width: 'form',
    });
  }

  @Get('invitations/:id/withdraw')
  @RequiresOperation('users.invite')
  async askToWithdraw(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentStore() store: EnteredStore,
  ): Promise<void> {
    const open = await this.members.listOpenInvitations(store.id);
    const invitation = open.find((one) => one.id === parsePathId(id));
    if (!invitation) throw new NotFoundError('Invitation');
    await this.pages.sendConfirmation(request, reply, {
      question: 'Withdraw this invitation?',
      about: invitation.email,
      text: 'Its link stops working at once. You can invite the person again.',
      yes: 'Withdraw it',
      no: 'Keep it',
      action: `${buildUsersPath(store)}/invitations/${invitation.id}/withdraw`,
      back: buildUsersPath(store),
    });
  }

  @Post('invitations/:id/withdraw')
  @RequiresOperation('users.invite')
  @TakesForm()
  @Throttle(PER_MINUTE)
  async withdraw(
    @Param('id') id: string,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentUser() user: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<void> {
    try {
      await this.bus.execute(new WithdrawInvitation(by, store.id, parsePathId(id)));
    } catch (error) {
      return this.send(request, reply, user, store, { formErrors: toFormErrors(error) });
    }
    await this.redirectWithNotice(reply, store, 'withdrawn');
  }

  @Post(':id/role')
  @RequiresOperation('users.change_role')
  @TakesForm()
  @Throttle(PER_MINUTE)
  async changeRole(
    @Param('id') id: string,
    @Body() form: Form,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentUser() user: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<void> {
    try {
      const role = form['role'] ?? '';
      if (!isRole(role)) throw new RejectedError({ base: ['Please choose a role'] });
      if (givesUpOwnership(user, parsePathId(id), role) && form['sure'] !== 'yes') {
        return await this.askToGiveUp(request, reply, user, store, role);
      }
      await this.bus.execute(new ChangeRole(by, store.id, parsePathId(id), role, true));
    } catch (error) {
      return this.send(request, reply, user, store, { formErrors: toFormErrors(error) });
    }
    // A former owner may not see this page any more.
    if (parsePathId(id) === user.userId)
      return this.pages.redirect(reply, `/app/stores/${store.id}`);
    await this.redirectWithNotice(reply, store, 'role');
  }

  @Get(':id/remove')
  @RequiresOperation('users.remove')
  async askToRemove(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentUser() { userId }: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<void> {
    const members = await this.members.listMembers(store.id);
    const member = members.find((one) => one.id === parsePathId(id));
    if (!member) throw new NotFoundError('Member');
    const about =
      member.id === userId
        ? {
            question: 'Leave this store?',
            about: store.name,
            text: 'You can no longer open it, and your API tokens no longer work for it. Another owner can invite you again.',
            yes: 'Leave',
            no: 'Stay',
          }
        : {
            question: 'Remove this user?',
            about: `${member.name}, ${member.email}`,
            text: 'They can no longer open this store, and their API tokens no longer work for it: tills and web shops that use one stop at once. You can invite them again.',
            yes: 'Remove',
            no: 'Keep',
          };
    const action = `${buildUsersPath(store)}/${member.id}/remove`;
    await this.pages.sendConfirmation(request, reply, {
      ...about,
      action,
      back: buildUsersPath(store),
    });
  }

  @Post(':id/remove')
  @RequiresOperation('users.remove')
  @TakesForm()
  @Throttle(PER_MINUTE)
  async remove(
    @Param('id') id: string,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentUser() user: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<void> {
    try {
      await this.bus.execute(new RemoveMember(by, store.id, parsePathId(id), true));
    } catch (error) {
      return this.send(request, reply, user, store, { formErrors: toFormErrors(error) });
    }
    if (parsePathId(id) === user.userId) return this.pages.redirect(reply, '/app');
    await this.redirectWithNotice(reply, store, 'removed');
  }

  private async redirectWithNotice(
    reply: FastifyReply,
    store: EnteredStore,
    what: string,
  ): Promise<void> {
    await this.pages.redirect(reply, `${buildUsersPath(store)}?done=${what}`);
  }

  private askToGiveUp(
    request: FastifyRequest,
    reply: FastifyReply,
    { userId }: SignedInUser,
    store: EnteredStore,
    role: Role,
  ): Promise<void> {
    const { text } = ROLE_LABELS[role];
    return this.pages.sendConfirmation(request, reply, {
      question: 'Stop being an owner?',
      about: store.name,
      text: `Your role becomes ${text.toLowerCase()}, also for your API tokens. Only another owner can change it back.`,
      yes: 'Stop being an owner',
      no: 'Stay an owner',
      action: `${buildUsersPath(store)}/${userId}/role`,
      fields: { role, sure: 'yes' },
      back: buildUsersPath(store),
    });
  }

  private async send(
    request: FastifyRequest,
    reply: FastifyReply,
    { userId }: SignedInUser,
    store: EnteredStore,
    formState: Partial<Pick<UsersView, 'done' | 'formErrors' | 'values'>>,
    status = formState.formErrors ? 422 : 200,
  ): Promise<void> {
    const members = await this.members.listMembers(store.id);
    const invitations = await this.members.listOpenInvitations(store.id);
    const { day } = await this.times.forStore(store.id);
    const owners = members.filter(({ role }) => role === 'owner').length;
    await this.pages.send(request, reply, {
      view,
      title: `Users · ${store.name}`,
      data: {
        members: members.map((member) => ({
          ...member,
          roleText: ROLE_LABELS[member.role].text,
          isSelf: member.id === userId,
          isLastOwner: member.role === 'owner' && owners === 1,
        })),
        invitations: invitations.map(({ id, email, role, invitedBy, expiresAt }) => ({
          id,
          email,
          roleText: ROLE_LABELS[role].text,
          invitedBy,
          until: day(expiresAt),
        })),
        roles: ROLES.map((value) => ({ value, ...ROLE_LABELS[value] })),
        roleOptions: ROLE_OPTIONS,
        values: { email: '', role: 'staff' as const },
        formErrors: NO_FORM_ERRORS,
        done: '',
        ...formState,
      },
      status,
    });
  }
}

function buildUsersPath({ id }: EnteredStore): string {
  return `/app/stores/${id}/users`;
}

/** Tells whether owners give up their own role. Only owners can open this page. */
function givesUpOwnership({ userId }: SignedInUser, id: number, role: Role): boolean {
  return id === userId && role !== 'owner';
}
