import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { DataSource, type EntityManager } from 'typeorm';
import { getEmailKey, normalizeEmailAddress } from '#platform/kernel/email-address.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { normalizeText } from '#platform/kernel/text.js';
import { query } from '#platform/database/connection.js';
import {
  AuditedWrites,
  type AuditedTransaction,
  type AuditedWriter,
} from '#platform/event-store/commands/audited-writes.service.js';
import {
  assertValidUser,
  confirmAddress,
  getUserId,
  refuseTakenEmail,
  type UserRef,
} from './identity.commands.js';
import { UserRow } from './identity.entity.js';
import { findPasswordEnd, hashPassword, Passwords } from './passwords.service.js';
import { Sessions } from './sessions.service.js';
import { auditUser } from './user-audit.service.js';
import { findUserChanges } from './user-changes.js';
import { ISSUES } from '#translations/issues.js';

/**
 * Ends all sessions of the user but one, every link for a new password, and the PIN: whoever knew the former password
 * may have set it.
 */
export class SetPassword extends Command<{ userId: number }> {
  constructor(
    readonly by: AuditedWriter,
    readonly user: UserRef,
    readonly password: string,
    /** The session that it was changed from; 0: none. */
    readonly sessionId = 0,
    /** Whether the user has to change it at the next sign-in. */
    readonly isFirstPassword = false,
  ) {
    super();
  }
}

@CommandHandler(SetPassword)
export class SetPasswordHandler implements ICommandHandler<SetPassword> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly sessions: Sessions,
    private readonly passwords: Passwords,
    private readonly source: DataSource,
  ) {}

  /** @throws RejectedError */
  async execute(command: SetPassword): Promise<{ userId: number }> {
    const { by, user: ref, password, sessionId, isFirstPassword } = command;
    const present = await getPresentUser(this.source.manager, ref);
    const { id, email, name } = present;
    await this.passwords.assertAcceptable(password, { email, name, userId: id });
    const isToChange = present.password_expires_at !== null && !isFirstPassword;
    if (isToChange && (await this.passwords.matches(present.password_hash, password)))
      throw new RejectedError({ password: [ISSUES.password_unchanged] });
    const password_hash = await hashPassword(password);
    return this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const user = await getPresentUser(manager, ref);
      const { id: userId } = user;
      // Every hash has a salt of its own, so an equal hash means that an earlier try was committed.
      if (user.password_hash === password_hash) return { userId };
      const password_expires_at = findPasswordEnd(isFirstPassword);
      await manager.update(UserRow, { id: userId }, { password_hash, password_expires_at });
      // The wrong codes were entered with the former password.
      await query(manager, {
        text: 'update second_factors set code_failures = 0 where user_id = $1',
        values: [userId],
      });
      await endPasswordLinks(manager, userId);
      const pins = await query(manager, {
        text: 'delete from counter_pins where user_id = $1 returning user_id',
        values: [userId],
      });
      if (pins.length > 0) await auditUser(transaction, userId, 'user.pin_removed');
      const endedSessions = await this.sessions.endAll(manager, userId, sessionId);
      await auditUser(transaction, userId, 'user.password_changed', {
        sessions_ended: endedSessions,
      });
      return { userId };
    });
  }
}

/**
 * Changes a user, for the operator: users change their address by `RequestAddressChange`. A new address ends all
 * sessions, since another person may be signed in, and every open link: it went to the former address, or to one that is
 * older than the operator's.
 */
export class UpdateUser extends Command<{ userId: number }> {
  constructor(
    readonly by: AuditedWriter,
    readonly user: UserRef,
    /** Fields that are left out stay. */
    readonly values: { name?: string; email?: string },
    /** Whether the operator vouches that the user reads the e-mails to the address. */
    readonly isConfirmed = false,
  ) {
    super();
  }
}

@CommandHandler(UpdateUser)
export class UpdateUserHandler implements ICommandHandler<UpdateUser> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly sessions: Sessions,
  ) {}

  /** @throws RejectedError */
  async execute(command: UpdateUser): Promise<{ userId: number }> {
    const { by, user: ref, values: input, isConfirmed } = command;
    const values = {
      ...(input.name !== undefined && { name: normalizeText(input.name) }),
      ...(input.email !== undefined && { email: normalizeEmailAddress(input.email) }),
    };
    assertValidUser(values);
    const update = async (transaction: AuditedTransaction) => {
      const { manager } = transaction;
      const user = await getPresentUser(manager, ref);
      const { id: userId } = user;
      const { name = user.name, email = user.email } = values;
      if (user.name === name && user.email === email) {
        if (isConfirmed) await confirmAddress(transaction, userId, 'operator');
        return { userId };
      }
      const email_key = user.email === email ? user.email_key : getEmailKey(email);
      const isOther = user.email_key !== email_key;
      await manager.update(
        UserRow,
        { id: userId },
        { name, email, email_key, ...(isOther && { email_confirmed_at: null }) },
      );
      const changes = findUserChanges(user, { name, email });
      let ended = {};
      if (user.email !== email) {
        await endPasswordLinks(manager, userId);
        await endAddressLinks(manager, userId);
        ended = { sessions_ended: await this.sessions.endAll(manager, userId) };
      }
      await auditUser(transaction, userId, 'user.updated', { changes, ...ended });
      if (isConfirmed) await confirmAddress(transaction, userId, 'operator');
      return { userId };
    };
    return this.writes.write(by, update).catch(refuseTakenEmail);
  }
}

/** Unlinks the person of a company, so that the next one with the user's address can sign in. */
export class UnlinkCompany extends Command<{ userId: number; unlinked: number }> {
  constructor(
    readonly by: AuditedWriter,
    readonly user: UserRef,
  ) {
    super();
  }
}

@CommandHandler(UnlinkCompany)
export class UnlinkCompanyHandler implements ICommandHandler<UnlinkCompany> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly sessions: Sessions,
  ) {}

  async execute({ by, user }: UnlinkCompany): Promise<{ userId: number; unlinked: number }> {
    return this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const userId = await getUserId(manager, user);
      const { length: unlinked } = await query(manager, {
        text: 'delete from company_sign_ins where user_id = $1 returning user_id',
        values: [userId],
      });
      if (unlinked === 0) return { userId, unlinked };
      const sessions_ended = await this.sessions.endAll(manager, userId);
      await auditUser(transaction, userId, 'user.company_unlinked', { sessions_ended });
      return { userId, unlinked };
    });
  }
}

export const userHandlers = [SetPasswordHandler, UpdateUserHandler, UnlinkCompanyHandler];

/** Ends the user's open links for a new password. */
export async function endPasswordLinks(manager: EntityManager, userId: number): Promise<void> {
  await query(manager, {
    text: 'update password_resets set used_at = now() where user_id = $1 and used_at is null',
    values: [userId],
  });
}

/** A user who was not removed, and so has an address. */
export type PresentUser = UserRow & { email: string };

/** Ends the user's open links to a new address. */
export async function endAddressLinks(manager: EntityManager, userId: number): Promise<void> {
  await query(manager, {
    text: 'update address_changes set used_at = now() where user_id = $1 and used_at is null',
    values: [userId],
  });
}

/** @throws NotFoundError */
export async function getPresentUser(manager: EntityManager, ref: UserRef): Promise<PresentUser> {
  const user = await manager.findOneByOrFail(UserRow, { id: await getUserId(manager, ref) });
  if (user.email === null) throw new NotFoundError('User');
  return { ...user, email: user.email };
}
