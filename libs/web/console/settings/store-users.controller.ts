import { Body, Controller, Param, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { EntityManager } from 'typeorm';
import { Config } from '#configuration/config.js';
import { NotFoundError, RateLimitedError, RejectedError } from '#platform/kernel/errors.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import type { Form } from '#platform/http/body-kinds.js';
import { parsePathId } from '#platform/http/path.js';
import {
  InviteUser,
  WithdrawInvitation,
  type CreatedInvitation,
  type InvitationResult,
} from '#identity/invitation.commands.js';
import { INVITATION_DAYS } from '#identity/links.js';
import { ChangeRole, RemoveMember } from '#identity/member.commands.js';
import { Members, type Member } from '#identity/members.service.js';
import { isRole, limitRole, type Role } from '#identity/roles.js';
import { SecondFactors } from '#identity/second-factors.service.js';
import { StoreProfiles } from '#identity/store-profiles.service.js';
import { Reauthentication } from '#web/sign-in/reauthentication.service.js';
import { MailOutbox } from '#outbound/messages/mail-outbox.service.js';
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
import { NewInvitationDto } from '#web/admin-api/admin-member.dto.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { loadView } from '#web/pages/view.js';
import { linkToOverview } from '#web/pages/navigation.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { defineForm, type ValuesOf } from '#web/pages/forms.js';
import { toFormErrors, type Rejectable } from '#web/pages/form-errors.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import { getTranslations, type Localization } from '#translations/translations.js';
import { type PageResult, showPage, askToConfirm, redirectTo } from '#web/pages/page-results.js';
import { localizeRequest } from '#web/pages/localize.js';
import { createInvitationMail } from './invitation-mail.js';
import { listRoleOptions } from './role-labels.js';
import { createTooManyMailsErrors } from './too-many-mails.js';
import { ISSUES } from '#translations/issues.js';

type UsersView = {
  members: (Member & { isSelf: boolean; isLastOwner: boolean })[];
  invitations: { id: number; email: string; role: Role; invitedBy: string; until: string }[];
  roleOptions: { value: Role; text: string }[];
  /** Whether invitations are e-mailed. */
  sendsMail: boolean;
  requiresCodes: boolean;
  flash: string;
};

const view = loadView<UsersView>(import.meta.url, './views/users.eta');
const linkView = loadView<{ email: string; link: string; days: number; warning: string }>(
  import.meta.url,
  './views/invitation-link.eta',
);

const invitationForm = defineForm(NewInvitationDto, ['email', 'role']);

@Controller('app/stores/:account_id/users')
export class StoreUsersController {
  constructor(
    private readonly commands: FormCommands,
    private readonly members: Members,
    private readonly factors: SecondFactors,
    private readonly reauthentication: Reauthentication,
    private readonly outbox: MailOutbox,
    private readonly times: StoreTimes,
    private readonly profiles: StoreProfiles,
    private readonly config: Config,
  ) {}

  @GetPage('users.read')
  async show(
    @Query('done') done: string | undefined,
    @Localized() localization: Localization,
    @CurrentUser() user: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const { users: t } = localization.t.console;
    const messages = {
      invited: t.invited({ days: INVITATION_DAYS }),
      withdrawn: t.withdrawn,
      role: t.roleChanged,
      removed: t.removed,
    };
    return this.showUsers(localization, user, store, { flash: findFlashMessage(done, messages) });
  }

  @PostForm('users.invite', 'invitations', 30)
  async invite(
    @Body() form: Form,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @CurrentUser() user: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const values = invitationForm.read(form);
    const role = isRole(values.role) ? values.role : 'staff';
    const localization = localizeRequest(request);
    const send = async (manager: EntityManager, invited: CreatedInvitation) => {
      const invitation = { ...invited, role, store, inviter: user.name };
      const language = await this.findStoreLanguage(store, manager);
      const mail = createInvitationMail(invitation, this.config, language);
      const seconds = await this.outbox.addForStranger(manager, mail);
      if (seconds !== null) throw new RateLimitedError(seconds);
    };
    let invited: InvitationResult;
    try {
      const field = 'current_password';
      await this.reauthentication.assertPassword(user, form[field], field, request);
      invited = await this.commands.execute(
        new InviteUser(
          by,
          user.userId,
          store.id,
          values.email,
          role,
          this.config.mail === null ? null : send,
        ),
      );
    } catch (error) {
      if (error instanceof RateLimitedError) {
        const errors = createTooManyMailsErrors(error.retryAfterSeconds, localization);
        reply.header('retry-after', error.retryAfterSeconds);
        return this.showUsers(localization, user, store, { values, errors }, 429);
      }
      const errors = toFormErrors(error, localization);
      return this.showUsers(localization, user, store, { values, errors });
    }
    if (this.config.mail !== null) return this.redirectWithFlash(store, 'invited');
    // Without e-mail, the inviting user has to pass on the link, which no other page shows.
    const link = `${this.config.publicUrl}/app/invitations/${invited.secret}`;
    return showPage({
      view: linkView,
      title: localization.t.console.invitationLink.title,
      data: {
        email: invited.email,
        link,
        days: INVITATION_DAYS,
        warning: this.config.isOnlyLocal ? localization.t.words.localOnly : '',
      },
      width: 'form',
    });
  }

  @GetPage('users.invite', 'invitations/:id/withdraw')
  async askToWithdraw(
    @Param('id') id: string,
    @Localized() localization: Localization,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const open = await this.members.listOpenInvitations(store.id);
    const invitation = open.find((candidate) => candidate.id === parsePathId(id));
    if (!invitation) throw new NotFoundError('Invitation');
    const { users: t } = localization.t.console;
    return askToConfirm({
      question: t.askWithdraw,
      about: invitation.email,
      text: t.askWithdrawText,
      yes: t.withdrawYes,
      no: t.keep,
      back: buildUsersPath(store),
    });
  }

  @PostForm('users.invite', 'invitations/:id/withdraw', 30)
  async withdraw(
    @Param('id') id: string,
    @ConsoleWriter() by: AuditedWriter,
    @Localized() localization: Localization,
    @CurrentUser() user: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    try {
      await this.commands.execute(new WithdrawInvitation(by, store.id, parsePathId(id)));
    } catch (error) {
      return this.showUsers(localization, user, store, {
        errors: toFormErrors(error, localization),
      });
    }
    return this.redirectWithFlash(store, 'withdrawn');
  }

  @PostForm('users.change_role', ':id/role', 30)
  async changeRole(
    @Param('id') id: string,
    @Body() form: Form,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @CurrentUser() user: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    try {
      const role = form['role'] ?? '';
      if (!isRole(role)) throw new RejectedError({ base: [ISSUES.unknown_role] });
      const members = await this.members.listMembers(store.id);
      const member = members.find((candidate) => candidate.id === parsePathId(id));
      const question = member && (await this.askForRole(form, user, request, store, member, role));
      if (question) return question;
      await this.commands.execute(new ChangeRole(by, store.id, parsePathId(id), role, true));
    } catch (error) {
      return this.showUsers(localizeRequest(request), user, store, {
        errors: toFormErrors(error, localizeRequest(request)),
      });
    }
    // A former owner may not see this page any more.
    if (parsePathId(id) === user.userId) return redirectTo(`/app/stores/${store.id}`);
    return this.redirectWithFlash(store, 'role');
  }

  @GetPage('users.remove', ':id/remove')
  async askToRemove(
    @Param('id') id: string,
    @Localized() localization: Localization,
    @CurrentUser() { userId }: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const members = await this.members.listMembers(store.id);
    const member = members.find((candidate) => candidate.id === parsePathId(id));
    if (!member) throw new NotFoundError('Member');
    const { users: t } = localization.t.console;
    const about =
      member.id === userId
        ? {
            question: t.askLeave,
            about: store.name,
            text: t.askLeaveText,
            yes: t.leaveYes,
            no: t.leaveNo,
          }
        : {
            question: t.askRemove,
            about: `${member.name}, ${member.email}`,
            text: t.askRemoveText,
            yes: t.removeYes,
            no: t.removeNo,
          };
    return askToConfirm({
      ...about,
      back: buildUsersPath(store),
    });
  }

  @PostForm('users.remove', ':id/remove', 30)
  async remove(
    @Param('id') id: string,
    @ConsoleWriter() by: AuditedWriter,
    @Localized() localization: Localization,
    @CurrentUser() user: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    try {
      await this.commands.execute(new RemoveMember(by, store.id, parsePathId(id), true));
    } catch (error) {
      return this.showUsers(localization, user, store, {
        errors: toFormErrors(error, localization),
      });
    }
    if (parsePathId(id) === user.userId) return redirectTo('/app');
    return this.redirectWithFlash(store, 'removed');
  }

  /**
   * Asks before owners give up their own role, and for the password before more rights.
   * @returns undefined when nothing is left to ask
   */
  private async askForRole(
    form: Form,
    user: SignedInUser,
    request: FastifyRequest,
    store: EnteredStore,
    member: Member,
    role: Role,
  ): Promise<PageResult | undefined> {
    const isSure = form['sure'] === 'yes';
    const isRaised = isRaise(member.role, role);
    const passwordErrors =
      isRaised && isSure
        ? await this.reauthentication.findPasswordErrors(user, form['current_password'], request)
        : [];
    const isAsked = isRaised || givesUpOwnership(user, member.id, role);
    if (!isAsked || (isSure && passwordErrors.length === 0)) return undefined;
    const { console, signIn } = localizeRequest(request).t;
    const { users: t, roles } = console;
    const inText = roles.inText[role];
    return askToConfirm({
      question: isRaised ? signIn.moreRights.title : t.askGiveUp,
      about: isRaised ? `${member.name}, ${member.email}` : store.name,
      text: isRaised ? signIn.moreRights.text({ role: inText }) : t.askGiveUpText({ role: inText }),
      yes: isRaised ? t.change : t.giveUpYes,
      no: isRaised ? signIn.back : t.giveUpNo,
      fields: { role, sure: 'yes' },
      passwordErrors: isRaised ? passwordErrors : null,
      back: buildUsersPath(store),
    });
  }

  /** Finds the language of the e-mails of a store to its team. */
  private async findStoreLanguage(
    { id }: EnteredStore,
    manager: EntityManager,
  ): Promise<Localization> {
    const [profile] = await this.profiles.findProfiles([id], manager);
    return getTranslations(profile?.locale ?? 'en');
  }

  private redirectWithFlash(store: EnteredStore, name: string): PageResult {
    return redirectTo(`${buildUsersPath(store)}?done=${name}`);
  }

  private async showUsers(
    localization: Localization,
    { userId }: SignedInUser,
    store: EnteredStore,
    {
      errors,
      values = invitationForm.toValues({ role: 'staff' }),
      flash = '',
    }: Rejectable & { values?: ValuesOf<typeof invitationForm>; flash?: string },
    status?: number,
  ): Promise<PageResult> {
    const members = await this.members.listMembers(store.id);
    const invitations = await this.members.listOpenInvitations(store.id);
    const { t, locale } = localization;
    const { day } = await this.times.createFormats(store.id, locale);
    const owners = members.filter(({ role }) => role === 'owner').length;
    return showPage({
      view,
      title: t.console.pageOf({ page: t.console.users.title, store: store.name }),
      breadcrumb: linkToOverview(store, t),
      data: {
        members: members.map((member) => ({
          ...member,
          isSelf: member.id === userId,
          isLastOwner: member.role === 'owner' && owners === 1,
        })),
        invitations: invitations.map(({ id, email, role, invitedBy, expiresAt }) => ({
          id,
          email,
          role,
          invitedBy,
          until: day(expiresAt),
        })),
        roleOptions: listRoleOptions(t),
        sendsMail: this.config.mail !== null,
        requiresCodes: await this.factors.isRequiredBy(store.id),
        flash,
      },
      errors,
      inputs: invitationForm.toInputs(values),
      ...(status !== undefined && { status }),
    });
  }
}

function buildUsersPath({ id }: EnteredStore): string {
  return `/app/stores/${id}/users`;
}

/** Tells whether the new role has more rights. */
function isRaise(role: Role, newRole: Role): boolean {
  return role !== newRole && limitRole(newRole, role) === role;
}

/** Tells whether owners give up their own role. Only owners can open this page. */
function givesUpOwnership({ userId }: SignedInUser, id: number, role: Role): boolean {
  return id === userId && role !== 'owner';
}
