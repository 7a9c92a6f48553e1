import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { DataSource, type EntityManager } from 'typeorm';
import type { Actor, RequestSource } from '#platform/kernel/aggregate.js';
import {
  getEmailKey,
  isEmailAddress,
  normalizeEmailAddress,
} from '#platform/kernel/email-address.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { createSecret } from '#platform/kernel/randomness.js';
import { normalizeText } from '#platform/kernel/text.js';
import { query } from '#platform/database/connection.js';
import {
  AuditedWrites,
  type AuditedTransaction,
  type AuditedWriter,
} from '#platform/event-store/commands/audited-writes.service.js';
import { AddressConfirmation } from './address-confirmation.service.js';
import { assertValidUser, getUserId, insertUser } from './identity.commands.js';
import type { UserRow } from './identity.entity.js';
import { INVITATION_DAYS } from './links.js';
import { hashPassword, Passwords } from './passwords.service.js';
import type { Role } from './roles.js';
import { hashToken } from './token.js';
import { auditChange, createSystemWriter } from './user-audit.service.js';
import { ISSUES } from '#translations/issues.js';

/** Limits the open invitations of a store. */
const MAX_INVITATIONS = 50;

/** Holds an invitation right after its creation. The secret is stored as a hash. */
export type CreatedInvitation = { invitationId: number; email: string; secret: string };

/** Holds what the inviter gets, sealed for 24 hours. @property secret null: the person got it by e-mail */
export type InvitationResult = { invitationId: number; email: string; secret: string | null };

export class InviteUser extends Command<InvitationResult> {
  constructor(
    readonly by: AuditedWriter,
    readonly inviterId: number,
    readonly accountId: number,
    readonly email: string,
    readonly role: Role,
    /** E-mails it to the address, in the same transaction; null: the inviter passes it on. */
    readonly send:
      | ((manager: EntityManager, invitation: CreatedInvitation) => Promise<void>)
      | null,
  ) {
    super();
  }
}

@CommandHandler(InviteUser)
export class InviteUserHandler implements ICommandHandler<InviteUser> {
  constructor(private readonly writes: AuditedWrites) {}

  async execute({
    by,
    inviterId,
    accountId,
    role,
    send,
    ...input
  }: InviteUser): Promise<InvitationResult> {
    const email = parseInvitedAddress(input.email);
    const emailKey = getEmailKey(email);
    const secret = createSecret();
    const sha256 = hashToken(secret);
    const resultSecret = send === null ? secret : null;
    return this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const [existing] = await query<{ id: number }>(manager, {
        text: 'select id from invitations where sha256 = $1',
        values: [sha256],
      });
      if (existing) return { invitationId: existing.id, email, secret: resultSecret };
      await replaceInvitation(manager, accountId, emailKey);
      const [created] = await query<{ id: number }>(manager, {
        text: `insert into invitations
           (account_id, email, email_key, role, sha256, invited_by, is_mailed, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, now(), now() + make_interval(days => $8))
         on conflict do nothing returning id`,
        values: [
          accountId,
          email,
          emailKey,
          role,
          sha256,
          inviterId,
          send !== null,
          INVITATION_DAYS,
        ],
      });
      // Somebody else has invited them at the same time.
      if (!created) throw new RejectedError({ email: [ISSUES.already_invited] });
      const invitation = { invitationId: created.id, email, secret };
      await send?.(manager, invitation);
      const subject = { invitation_id: invitation.invitationId, role };
      await auditChange(transaction, 'user.invited', [accountId], subject);
      return { ...invitation, secret: resultSecret };
    });
  }
}

export class WithdrawInvitation extends Command<{ invitationId: number }> {
  constructor(
    readonly by: AuditedWriter,
    readonly accountId: number,
    readonly invitationId: number,
  ) {
    super();
  }
}

@CommandHandler(WithdrawInvitation)
export class WithdrawInvitationHandler implements ICommandHandler<WithdrawInvitation> {
  constructor(private readonly writes: AuditedWrites) {}

  async execute({ by, accountId, invitationId }: WithdrawInvitation) {
    return this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const [invitation] = await query<{ is_withdrawn: boolean }>(manager, {
        text: `select withdrawn_at is not null as is_withdrawn from invitations
         where id = $1 and account_id = $2 and accepted_at is null for update`,
        values: [invitationId, accountId],
      });
      if (!invitation) throw new NotFoundError('Invitation');
      if (invitation.is_withdrawn) return { invitationId };
      await query(manager, {
        text: 'update invitations set withdrawn_at = now() where id = $1',
        values: [invitationId],
      });
      const subject = { invitation_id: invitationId };
      await auditChange(transaction, 'invitation.withdrawn', [accountId], subject);
      return { invitationId };
    });
  }
}

/** The person who accepts an invitation: a signed-in user or a new one. */
export type Invitee = { userId: number } | { name: string; password: string };

export class AcceptInvitation extends Command<{ userId: number; accountId: number }> {
  constructor(
    readonly source: RequestSource,
    readonly secret: string,
    readonly invitee: Invitee,
  ) {
    super();
  }
}

type OpenInvitation = {
  id: number;
  account_id: number;
  email: string;
  email_key: string;
  role: Role;
  is_mailed: boolean;
};

@CommandHandler(AcceptInvitation)
export class AcceptInvitationHandler implements ICommandHandler<AcceptInvitation> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly passwords: Passwords,
    private readonly source: DataSource,
    private readonly confirmation: AddressConfirmation,
  ) {}

  /** @throws NotFoundError when the link is not in force, RejectedError */
  async execute({ source: requestSource, secret, invitee }: AcceptInvitation) {
    const sha256 = hashToken(secret);
    const {
      email,
      email_key,
      account_id: accountId,
    } = await getOpenInvitation(this.source.manager, sha256);
    const isNew = 'name' in invitee;
    const name = isNew ? normalizeText(invitee.name) : '';
    if (isNew) {
      const { password } = invitee;
      const passwordIssue = await this.passwords.findIssue(password, { email, name, accountId });
      assertValidUser({ name }, passwordIssue);
    }
    const password_hash = isNew ? await hashPassword(invitee.password) : '';
    const by: AuditedWriter = { ...createSystemWriter(requestSource), channel: 'owner' };
    return this.writes.write(by, async (transaction) => {
      const { manager, isRepeated } = transaction;
      const earlier = isRepeated ? await findAcceptedInvitation(manager, sha256) : undefined;
      if (earlier) return earlier;
      const invitation = await getOpenInvitation(manager, sha256, 'for update of i');
      const userId = isNew
        ? await createUser(transaction, { email, email_key, name, password_hash })
        : await getUserId(manager, invitee.userId);
      await joinStore(transaction, invitation, userId);
      // Only for an account that the invitation creates: another person may know the password of an earlier one. And
      // not by a link that the inviter has seen, who could confirm any address.
      if (isNew && invitation.is_mailed) {
        await this.confirmation.confirm(transaction, userId, 'invitation');
      }
      return { userId, accountId: invitation.account_id };
    });
  }
}

export const invitationHandlers = [
  InviteUserHandler,
  WithdrawInvitationHandler,
  AcceptInvitationHandler,
];

/** @returns the address as it is stored @throws RejectedError */
function parseInvitedAddress(input: string): string {
  const email = normalizeEmailAddress(input);
  if (isEmailAddress(email)) return email;
  throw new RejectedError({ email: [ISSUES.email_incomplete] });
}

/** Withdraws earlier invitations to the address. @throws RejectedError for members and above the limit */
async function replaceInvitation(
  manager: EntityManager,
  accountId: number,
  emailKey: string,
): Promise<void> {
  const members = await query(manager, {
    text: `select 1 from memberships m join users u on u.id = m.user_id
     where m.account_id = $1 and u.email_key = $2 and u.removed_at is null`,
    values: [accountId, emailKey],
  });
  if (members.length > 0) throw new RejectedError({ email: [ISSUES.already_in_store] });
  await query(manager, {
    text: `update invitations set withdrawn_at = now()
     where account_id = $1 and accepted_at is null and withdrawn_at is null
       and (email_key = $2 or expires_at <= now())`,
    values: [accountId, emailKey],
  });
  // Of two that are invited at the same time, one waits for the other.
  await query(manager, {
    text: `select from memberships where account_id = $1 and role = 'owner' order by user_id for update`,
    values: [accountId],
  });
  const [open] = await query<{ count: number }>(manager, {
    text: `select count(*) from invitations
     where account_id = $1 and accepted_at is null and withdrawn_at is null`,
    values: [accountId],
  });
  if (open && open.count < MAX_INVITATIONS) return;
  throw new RejectedError(
    { base: [ISSUES.too_many_invitations({ max: MAX_INVITATIONS })] },
    'limit_reached',
    'Withdraw some of them first.',
  );
}

/** Gets an open invitation, while its inviter is still an owner. @throws NotFoundError */
async function getOpenInvitation(
  manager: EntityManager,
  sha256: Buffer,
  lock = '',
): Promise<OpenInvitation> {
  const [invitation] = await query<OpenInvitation>(manager, {
    text: `select i.id, i.account_id, i.email, i.email_key, i.role, i.is_mailed from invitations i
     join memberships m on m.user_id = i.invited_by and m.account_id = i.account_id
     where i.sha256 = $1 and i.accepted_at is null and i.withdrawn_at is null
       and i.expires_at > now() and m.role = 'owner' ${lock}`,
    values: [sha256],
  });
  if (!invitation) throw new NotFoundError('Invitation');
  return invitation;
}

async function findAcceptedInvitation(manager: EntityManager, sha256: Buffer) {
  const [accepted] = await query<{ userId: number; accountId: number }>(manager, {
    text: `select accepted_by as "userId", account_id as "accountId" from invitations
     where sha256 = $1 and accepted_by is not null`,
    values: [sha256],
  });
  return accepted;
}

async function createUser(
  transaction: AuditedTransaction,
  user: Pick<UserRow, 'name' | 'email' | 'email_key' | 'password_hash'>,
): Promise<number> {
  const id = await insertUser(transaction.manager, user);
  if (id === undefined) throw new RejectedError({ base: [ISSUES.account_exists] });
  await transaction.audit({
    accountIds: [],
    type: 'user.created',
    subject: { user_id: id },
    actor: createUserActor(id),
  });
  return id;
}

/** @throws RejectedError */
async function joinStore(
  transaction: AuditedTransaction,
  { id, account_id, email, email_key, role }: OpenInvitation,
  userId: number,
): Promise<void> {
  const { manager } = transaction;
  const [user] = await query<{ email_key: string | null }>(manager, {
    text: 'select email_key from users where id = $1',
    values: [userId],
  });
  if (user?.email_key !== email_key) {
    throw new RejectedError({ base: [ISSUES.invitation_of_other({ email })] });
  }
  await query(manager, {
    text: 'update invitations set accepted_at = now(), accepted_by = $2 where id = $1',
    values: [id, userId],
  });
  const joined = await query(manager, {
    text: `insert into memberships (user_id, account_id, role, created_at) values ($1, $2, $3, now())
     on conflict do nothing returning user_id`,
    values: [userId, account_id, role],
  });
  // Whoever was added meanwhile keeps that role.
  if (joined.length === 0) return;
  const subject = { user_id: userId, role, invitation_id: id };
  await auditChange(transaction, 'member.added', [account_id], subject, createUserActor(userId));
}

function createUserActor(id: number): Actor {
  return { type: 'user', id };
}
