import { Body, Controller, Delete, Get, Param, Patch, Post } from '@nestjs/common';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { AllAccounts } from '#loyalty/accounts/all-accounts.service.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { parsePathId } from '#platform/http/path.js';
import { WithdrawInvitation } from '#identity/invitation.commands.js';
import { AddMember, ChangeRole, RemoveMember } from '#identity/member.commands.js';
import { Members } from '#identity/members.service.js';
import { AdminCommands, AdminWriter, renderNothing } from './admin-commands.service.js';
import {
  CreatedInvitationJson,
  ListedInvitationJson,
  ListedMemberJson,
  MemberChangesDto,
  MemberJson,
  NewInvitationDto,
  NewMemberDto,
  toListedInvitationJson,
  toListedMemberJson,
  toMemberJson,
} from './admin-member.dto.js';
import { AdminStores } from './admin-stores.service.js';
import { ACCOUNT_ID, INVITATION_ID, USER_ID } from './path-parameters.js';

@DeclaresTag({
  name: 'Members',
  order: 520,
  description: 'Who works in a store, and as what.',
})
@Controller('/api/admin/v1/accounts/:account_id')
export class AdminMembersController {
  constructor(
    private readonly commands: AdminCommands,
    private readonly stores: AdminStores,
    private readonly all: AllAccounts,
    private readonly memberLists: Members,
  ) {}

  @Get('members')
  @Endpoint({
    id: 'adminListMembers',
    tag: 'Members',
    summary: 'List the members of a store',
    description: 'Owners first, then managers and staff, up to 500.',
    path: [ACCOUNT_ID],
    status: 200,
    response: [ListedMemberJson],
    errors: [404],
  })
  async list(@Param('account_id') id: string): Promise<ListedMemberJson[]> {
    const { id: accountId } = await this.all.get(parsePathId(id));
    return (await this.memberLists.listMembers(accountId)).map(toListedMemberJson);
  }

  @Post('members')
  @Endpoint({
    id: 'adminAddMember',
    tag: 'Members',
    summary: 'Add a user to a store',
    description: 'At once and without an e-mail; an invitation asks the person first.',
    path: [ACCOUNT_ID],
    status: 201,
    response: MemberJson,
    errors: [404, 422],
  })
  async add(
    @AdminWriter() by: AuditedWriter,
    @Param('account_id') id: string,
    @Body() { user_id: user, role }: NewMemberDto,
  ): Promise<MemberJson> {
    return this.commands.execute(
      by,
      (author) => new AddMember(author, parsePathId(id), user, role),
      ({ userId }) => toMemberJson(userId, role),
    );
  }

  @Patch('members/:user_id')
  @Endpoint({
    id: 'adminChangeRole',
    tag: 'Members',
    summary: 'Change the role of a member',
    description: 'Holds for the tokens of the user at once.',
    path: [ACCOUNT_ID, USER_ID],
    status: 200,
    response: MemberJson,
    errors: [404, 422],
  })
  async changeRole(
    @AdminWriter() by: AuditedWriter,
    @Param('account_id') id: string,
    @Param('user_id') user: string,
    @Body() { role }: MemberChangesDto,
  ): Promise<MemberJson> {
    return this.commands.execute(
      by,
      (author) => new ChangeRole(author, parsePathId(id), parsePathId(user), role),
      ({ userId }) => toMemberJson(userId, role),
    );
  }

  @Delete('members/:user_id')
  @Endpoint({
    id: 'adminRemoveMember',
    tag: 'Members',
    summary: 'Remove a user from a store',
    description: 'The tokens of the user lose the store at once. Also removes the last owner.',
    path: [ACCOUNT_ID, USER_ID],
    status: 204,
    errors: [404],
  })
  async remove(
    @AdminWriter() by: AuditedWriter,
    @Param('account_id') id: string,
    @Param('user_id') user: string,
  ): Promise<void> {
    await this.commands.execute(
      by,
      (author) => new RemoveMember(author, parsePathId(id), parsePathId(user)),
      renderNothing,
    );
  }

  @Get('invitations')
  @Endpoint({
    id: 'adminListInvitations',
    tag: 'Members',
    summary: 'List the open invitations of a store',
    description: 'Those that nobody has accepted yet.',
    path: [ACCOUNT_ID],
    status: 200,
    response: [ListedInvitationJson],
    errors: [404],
  })
  async listInvitations(@Param('account_id') id: string): Promise<ListedInvitationJson[]> {
    const { id: accountId } = await this.all.get(parsePathId(id));
    return (await this.memberLists.listOpenInvitations(accountId)).map(toListedInvitationJson);
  }

  @Post('invitations')
  @Endpoint({
    id: 'adminInviteUser',
    tag: 'Members',
    summary: 'Create an invitation link',
    description:
      'In the name of the first owner. Nothing is sent: the link is in the response, for you to pass on.',
    path: [ACCOUNT_ID],
    status: 201,
    response: CreatedInvitationJson,
    errors: [404, 422],
    codes: ['limit_reached'],
  })
  async invite(
    @AdminWriter() by: AuditedWriter,
    @Param('account_id') id: string,
    @Body() body: NewInvitationDto,
  ): Promise<CreatedInvitationJson> {
    return this.stores.invite(by, parsePathId(id), body);
  }

  @Delete('invitations/:invitation_id')
  @Endpoint({
    id: 'adminWithdrawInvitation',
    tag: 'Members',
    summary: 'Withdraw an invitation',
    description: 'Its link stops working at once.',
    path: [ACCOUNT_ID, INVITATION_ID],
    status: 204,
    errors: [404],
  })
  async withdraw(
    @AdminWriter() by: AuditedWriter,
    @Param('account_id') id: string,
    @Param('invitation_id') invitation: string,
  ): Promise<void> {
    await this.commands.execute(
      by,
      (author) => new WithdrawInvitation(author, parsePathId(id), parsePathId(invitation)),
      renderNothing,
    );
  }
}
