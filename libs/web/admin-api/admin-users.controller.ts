import { Body, Controller, Delete, Get, Param, Patch, Post, Put, Query } from '@nestjs/common';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { Paged, PageReader } from '#platform/http/page.js';
import { parsePathId } from '#platform/http/path.js';
import { RemoveUser } from '#identity/identity.commands.js';
import { UnlinkCompany, UpdateUser } from '#identity/user.commands.js';
import { Users } from '#identity/users.service.js';
import { AdminCommands, AdminWriter, renderNothing } from './admin-commands.service.js';
import {
  ChangedPasswordJson,
  CreatedUserJson,
  NewPasswordDto,
  NewUserDto,
  RemovedUserJson,
  toRemovedUserJson,
  toUserJson,
  UserChangesDto,
  UserJson,
  UserQuery,
} from './admin-user.dto.js';
import { AdminUsers } from './admin-users.service.js';
import { USER_ID } from './path-parameters.js';

@DeclaresTag({
  name: 'Users',
  order: 530,
  description: 'The people who sign in or have API tokens.',
})
@Controller('/api/admin/v1/users')
export class AdminUsersController {
  constructor(
    private readonly commands: AdminCommands,
    private readonly adminUsers: AdminUsers,
    private readonly users: Users,
  ) {}

  @Get()
  @Endpoint({
    id: 'adminListUsers',
    tag: 'Users',
    summary: 'List users',
    description: 'Every user of the service, by id.',
    status: 200,
    response: [UserJson],
    errors: [422],
  })
  async list(
    @Query() { account_id: accountId, email, include_removed: hasRemoved, ...page }: UserQuery,
    @Paged() pages: PageReader,
  ): Promise<UserJson[]> {
    // A plus that was not encoded in the query arrives as a space, which no address has.
    const address = email?.trim().replaceAll(' ', '+') ?? null;
    const users = await pages.getPage(
      page,
      (range) => this.users.list({ accountId, email: address, hasRemoved }, range),
      ({ id }) => [id],
    );
    return users.map(toUserJson);
  }

  @Post()
  @Endpoint({
    id: 'adminCreateUser',
    tag: 'Users',
    summary: 'Create a user',
    description: 'Nothing is sent. A link for a password of their own is an operation of its own.',
    status: 201,
    response: CreatedUserJson,
    errors: [422],
  })
  async create(
    @AdminWriter() by: AuditedWriter,
    @Body() body: NewUserDto,
  ): Promise<CreatedUserJson> {
    return this.adminUsers.create(by, body);
  }

  @Get(':user_id')
  @Endpoint({
    id: 'adminGetUser',
    tag: 'Users',
    summary: 'Show a user',
    description: 'Also one who was removed.',
    path: [USER_ID],
    status: 200,
    response: UserJson,
    errors: [404],
  })
  async show(@Param('user_id') id: string): Promise<UserJson> {
    return toUserJson(await this.users.get(parsePathId(id)));
  }

  @Patch(':user_id')
  @Endpoint({
    id: 'adminUpdateUser',
    tag: 'Users',
    summary: 'Update a user',
    description:
      'Only the given fields change. A new address ends all sessions, and every open link.',
    path: [USER_ID],
    status: 200,
    response: UserJson,
    errors: [404, 422],
  })
  async update(
    @AdminWriter() by: AuditedWriter,
    @Param('user_id') id: string,
    @Body() { email_confirmed: isConfirmed, ...values }: UserChangesDto,
  ): Promise<UserJson> {
    return this.commands.execute(
      by,
      (author) => new UpdateUser(author, parsePathId(id), values, isConfirmed),
      async ({ userId }, manager) => toUserJson(await this.users.get(userId, manager)),
    );
  }

  @Delete(':user_id')
  @Endpoint({
    id: 'adminRemoveUser',
    tag: 'Users',
    summary: 'Remove a user',
    description:
      'From all stores, for ever: sessions and API tokens end. The response says which stores have no owner any more.',
    path: [USER_ID],
    status: 200,
    response: RemovedUserJson,
    errors: [404],
  })
  async remove(
    @AdminWriter() by: AuditedWriter,
    @Param('user_id') id: string,
  ): Promise<RemovedUserJson> {
    return this.commands.execute(
      by,
      (author) => new RemoveUser(author, parsePathId(id)),
      ({ userId, summary }) => toRemovedUserJson(userId, summary),
    );
  }

  @Put(':user_id/password')
  @Endpoint({
    id: 'adminSetPassword',
    tag: 'Users',
    summary: 'Set a password',
    description: 'Ends all sessions of the user, and the links for a new password.',
    path: [USER_ID],
    status: 200,
    response: ChangedPasswordJson,
    errors: [404, 422],
  })
  async setPassword(
    @AdminWriter() by: AuditedWriter,
    @Param('user_id') id: string,
    @Body() { password }: NewPasswordDto,
  ): Promise<ChangedPasswordJson> {
    return this.adminUsers.setPassword(by, parsePathId(id), password);
  }

  @Post(':user_id/password_link')
  @Endpoint({
    id: 'adminSendPasswordLink',
    tag: 'Users',
    summary: 'Send a link for a new password',
    description:
      'By e-mail, which needs a mail server. The link works once, for an hour. A user gets three an hour at most.',
    path: [USER_ID],
    status: 204,
    errors: [404, 422],
    codes: ['limit_reached'],
  })
  async sendPasswordLink(
    @AdminWriter() by: AuditedWriter,
    @Param('user_id') id: string,
  ): Promise<void> {
    await this.adminUsers.sendPasswordLink(by, parsePathId(id));
  }

  @Delete(':user_id/second_factor')
  @Endpoint({
    id: 'adminRemoveSecondFactor',
    tag: 'Users',
    summary: 'Turn off two-step verification',
    description:
      'For a user who has lost phone and recovery codes: the password alone then signs in.',
    path: [USER_ID],
    status: 204,
    errors: [404],
  })
  async removeSecondFactor(
    @AdminWriter() by: AuditedWriter,
    @Param('user_id') id: string,
  ): Promise<void> {
    await this.adminUsers.removeSecondFactor(by, parsePathId(id));
  }

  @Delete(':user_id/company_sign_in')
  @Endpoint({
    id: 'adminUnlinkCompany',
    tag: 'Users',
    summary: 'Unlink a company sign-in',
    description:
      'So that another person of the company with the address can sign in. Ends all sessions.',
    path: [USER_ID],
    status: 204,
    errors: [404],
  })
  async unlinkCompany(
    @AdminWriter() by: AuditedWriter,
    @Param('user_id') id: string,
  ): Promise<void> {
    await this.commands.execute(
      by,
      (author) => new UnlinkCompany(author, parsePathId(id)),
      renderNothing,
    );
  }
}
