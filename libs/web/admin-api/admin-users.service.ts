import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { CreateUser, getUserId } from '#identity/identity.commands.js';
import { generatePassword } from '#identity/passwords.service.js';
import { SecondFactors } from '#identity/second-factors.service.js';
import { SetPassword } from '#identity/user.commands.js';
import { Users } from '#identity/users.service.js';
import { PasswordResets } from '#web/sign-in/password-resets.service.js';
import { AdminCommands, renderNothing } from './admin-commands.service.js';
import {
  toCreatedUserJson,
  type ChangedPasswordJson,
  type CreatedUserJson,
  type NewUserDto,
} from './admin-user.dto.js';

/** Creates users, and lets those in who cannot sign in any more, for operators. */
@Injectable()
export class AdminUsers {
  constructor(
    private readonly commands: AdminCommands,
    private readonly source: DataSource,
    private readonly users: Users,
    private readonly factors: SecondFactors,
    private readonly resets: PasswordResets,
  ) {}

  /** Generates a password where there is none. @throws RejectedError */
  async create(
    by: AuditedWriter,
    { email, name, password, email_confirmed: isConfirmed }: NewUserDto,
  ): Promise<CreatedUserJson> {
    const generated = password === null ? generatePassword() : null;
    return this.commands.execute(
      by,
      (author) =>
        new CreateUser(
          author,
          email,
          name,
          password ?? generated ?? '',
          generated !== null,
          isConfirmed,
        ),
      async ({ userId }, manager) =>
        toCreatedUserJson(await this.users.get(userId, manager), generated),
    );
  }

  /** Generates a password where there is none. @throws NotFoundError, RejectedError */
  async setPassword(
    by: AuditedWriter,
    userId: number,
    password: string | null,
  ): Promise<ChangedPasswordJson> {
    const generated = password === null ? generatePassword() : null;
    return this.commands.execute(
      by,
      (author) =>
        new SetPassword(author, userId, password ?? generated ?? '', 0, generated !== null),
      () => ({ user_id: userId, password: generated }),
    );
  }

  /** @throws NotFoundError, RejectedError */
  async sendPasswordLink(by: AuditedWriter, userId: number): Promise<void> {
    await this.resets.sendTo({ ...by, respond: async () => renderNothing() }, userId);
  }

  /** @throws NotFoundError */
  async removeSecondFactor(by: AuditedWriter, userId: number): Promise<void> {
    await getUserId(this.source.manager, userId);
    await this.factors.remove({ ...by, respond: async () => renderNothing() }, userId);
  }
}
