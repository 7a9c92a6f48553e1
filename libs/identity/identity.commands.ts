import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { IsNull, type EntityManager } from 'typeorm';
import {
  findEmailKey,
  getEmailKey,
  isEmailAddress,
  normalizeEmailAddress,
} from '#platform/kernel/email-address.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { normalizeText } from '#platform/kernel/text.js';
import { query } from '#platform/database/connection.js';
import { findDatabaseError, SQLSTATE } from '#platform/database/sqlstate.js';
import {
  AuditedWrites,
  type AuditedTransaction,
  type AuditedWriter,
} from '#platform/event-store/commands/audited-writes.service.js';
import { MembershipRow, UserRow } from './identity.entity.js';
import { findPasswordEnd, hashPassword, Passwords } from './passwords.service.js';
import { Sessions } from './sessions.service.js';
import { StoreProfiles } from './store-profiles.service.js';
import { auditChange, auditUser, listStoreIds } from './user-audit.service.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues, Issue } from '#platform/kernel/issues.js';

export class CreateUser extends Command<{ userId: number }> {
  constructor(
    readonly by: AuditedWriter,
    readonly email: string,
    readonly name: string,
    readonly password: string,
    /** Whether the user has to change the password at the first sign-in. */
    readonly isFirstPassword = false,
    /** Whether the operator vouches that the user reads the e-mails to the address. */
    readonly isConfirmed = false,
  ) {
    super();
  }
}

@CommandHandler(CreateUser)
export class CreateUserHandler implements ICommandHandler<CreateUser> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly passwords: Passwords,
  ) {}

  async execute({
    by,
    password,
    isFirstPassword,
    isConfirmed,
    ...input
  }: CreateUser): Promise<{ userId: number }> {
    const email = normalizeEmailAddress(input.email);
    const name = normalizeText(input.name);
    assertValidUser({ name, email });
    await this.passwords.assertAcceptable(password, { email, name });
    const password_hash = await hashPassword(password);
    const email_key = getEmailKey(email);
    return this.writes.write(by, async (transaction) => {
      const { manager, isRepeated } = transaction;
      const existing = await findUserByEmailKey(manager, email_key);
      // Every hash has a salt of its own, so an equal hash means that an earlier try was committed.
      if (isRepeated && existing?.password_hash === password_hash) return { userId: existing.id };
      if (existing) throw createEmailTakenError();
      const userId = await insertUser(manager, {
        email,
        email_key,
        name,
        password_hash,
        password_expires_at: findPasswordEnd(isFirstPassword),
      });
      // Another process has inserted the same address first.
      if (userId === undefined) throw createEmailTakenError();
      await auditChange(transaction, 'user.created', [], { user_id: userId });
      if (isConfirmed) await confirmAddress(transaction, userId, 'operator');
      return { userId };
    });
  }
}

/** Summarizes the removal of a user: what ended with them, and the stores that stay. */
export type RemovalSummary = {
  /** Counts those that were active until now. */
  tokensEnded: number;
  sessionsEnded: number;
  /** Where the user was a member. */
  stores: {
    account_id: number;
    name: string;
    owners: number;
    members: number;
  }[];
};

export class RemoveUser extends Command<{ userId: number; summary: RemovalSummary }> {
  constructor(
    readonly by: AuditedWriter,
    readonly user: UserRef,
  ) {
    super();
  }
}

@CommandHandler(RemoveUser)
export class RemoveUserHandler implements ICommandHandler<RemoveUser> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly sessions: Sessions,
    private readonly profiles: StoreProfiles,
  ) {}

  async execute({ by, user }: RemoveUser): Promise<{ userId: number; summary: RemovalSummary }> {
    return this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const userId = await getUserId(manager, user);
      await manager.update(UserRow, { id: userId }, { removed_at: () => 'now()' });
      await query(manager, 'delete from counter_pins where user_id = $1', [userId]);
      const stores = await listStoreIds(manager, userId);
      await manager.delete(MembershipRow, { user_id: userId });
      // The next person with the same address signs in with the company as somebody new.
      await query(manager, 'delete from company_sign_ins where user_id = $1', [userId]);
      await auditChange(transaction, 'user.removed', stores, { user_id: userId });
      const sessionsEnded = await this.sessions.endAll(manager, userId);
      return {
        userId,
        summary: {
          sessionsEnded,
          ...(await summarizeRemoval(manager, userId, stores, this.profiles)),
        },
      };
    });
  }
}

async function summarizeRemoval(
  manager: EntityManager,
  userId: number,
  stores: number[],
  storeProfiles: StoreProfiles,
): Promise<Omit<RemovalSummary, 'sessionsEnded'>> {
  const [tokens] = await query<{ count: number }>(manager, {
    text: `select count(*)::int as count from api_tokens
     where user_id = $1 and revoked_at is null and (expires_at is null or expires_at > now())`,
    values: [userId],
  });
  const profiles = await storeProfiles.findProfiles(stores, manager);
  const summaries: RemovalSummary['stores'] = await query(manager, {
    text: `select a.id as account_id, a.name,
       (select count(*)::int from memberships m where m.account_id = a.id and m.role = 'owner') as owners,
       (select count(*)::int from memberships m where m.account_id = a.id) as members
     from unnest($1::bigint[], $2::text[]) as a (id, name) order by a.id`,
    values: [profiles.map(({ id }) => id), profiles.map(({ name }) => name)],
  });
  return { tokensEnded: tokens?.count ?? 0, stores: summaries };
}

export const identityHandlers = [CreateUserHandler, RemoveUserHandler];

/** @param passwordIssue why the password is refused @throws RejectedError */
export function assertValidUser(
  { name, email }: { name?: string; email?: string },
  passwordIssue?: Issue,
): void {
  const errors: FieldIssues = {
    ...((name === '' || [...(name ?? '')].length > 255) && {
      name: [ISSUES.name_length({ max: 255 })],
    }),
    ...(email !== undefined && !isEmailAddress(email) && { email: [ISSUES.email_invalid] }),
    ...(passwordIssue && { password: [passwordIssue] }),
  };
  if (Object.keys(errors).length > 0) throw new RejectedError(errors);
}

/** Names what shows that the address of a user is theirs. */
export type ConfirmedBy = 'address_link' | 'invitation' | 'password_link' | 'company' | 'operator';

/** Confirms the address of a user. @returns whether it was not confirmed until now */
export async function confirmAddress(
  transaction: AuditedTransaction,
  userId: number,
  by: ConfirmedBy,
): Promise<boolean> {
  const rows = await query(transaction.manager, {
    text: `update users set email_confirmed_at = now()
     where id = $1 and email_confirmed_at is null returning id`,
    values: [userId],
  });
  if (rows.length === 0) return false;
  await auditUser(transaction, userId, 'user.address_confirmed', { by });
  return true;
}

/** Finds a user without a lock, unlike `getUserId`. */
export function findUserByEmailKey(
  manager: EntityManager,
  emailKey: string,
): Promise<UserRow | null> {
  return manager.findOneBy(UserRow, { email_key: emailKey, removed_at: IsNull() });
}

type NewUser = Pick<UserRow, 'email' | 'email_key' | 'name' | 'password_hash'> & {
  password_expires_at?: (() => string) | null;
};

/** Inserts a user. @returns undefined when another one has the address */
export async function insertUser(
  manager: EntityManager,
  user: NewUser,
): Promise<number | undefined> {
  const { identifiers } = await manager
    .createQueryBuilder()
    .insert()
    .into(UserRow)
    .values({ ...user, created_at: () => 'now()' })
    .orIgnore()
    .execute();
  return identifiers[0] && Number(identifiers[0]['id']);
}

/** Names a user by e-mail address, in any spelling, or by id. */
export type UserRef = string | number;

/**
 * Gets the id of a user and locks the user: until the end of the transaction, nobody else changes it.
 * @throws NotFoundError
 */
export async function getUserId(manager: EntityManager, ref: UserRef): Promise<number> {
  const [column, value] =
    typeof ref === 'number' ? ['id', ref] : ['email_key', findEmailKey(ref) ?? null];
  const [user] = await query<{ id: number }>(manager, {
    text: `select id from users where ${column} = $1 and removed_at is null for no key update`,
    values: [value],
  });
  if (!user) throw new NotFoundError(typeof ref === 'number' ? 'User' : `User ${ref}`);
  return user.id;
}

/** Converts the error of a write of a user whose address another one has. @throws RejectedError */
export function refuseTakenEmail(error: unknown): never {
  if (findDatabaseError(error)?.code !== SQLSTATE.uniqueViolation) throw error;
  throw createEmailTakenError();
}

function createEmailTakenError(): RejectedError {
  return new RejectedError({ email: [ISSUES.email_in_use] });
}
