import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { EntityManager } from 'typeorm';
import {
  getEmailKey,
  isEmailAddress,
  normalizeEmailAddress,
} from '#platform/kernel/email-address.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { createSecret } from '#platform/kernel/randomness.js';
import { query } from '#platform/database/connection.js';
import {
  AuditedWrites,
  type AuditedTransaction,
  type AuditedWriter,
} from '#platform/event-store/commands/audited-writes.service.js';
import { AddressConfirmation } from './address-confirmation.service.js';
import { findUserByEmailKey, refuseTakenEmail } from './identity.commands.js';
import { UserRow } from './identity.entity.js';
import { ADDRESS_LINK_HOURS, type AddressChange, type AddressLink } from './links.js';
import { hashToken } from './token.js';
import { auditUser } from './user-audit.service.js';
import { findUserChanges } from './user-changes.js';
import { endAddressLinks, endPasswordLinks, getPresentUser } from './user.commands.js';
import { ISSUES } from '#translations/issues.js';

const MAX_PER_HOUR = 3;

/**
 * Sends a link to a new address, which the user has to open before it counts. A user with somebody else's address would
 * share an account with its owner, who comes to it later by an invitation, a new password or a company. Only the
 * address itself learns whether another user has it.
 */
export class RequestAddressChange extends Command<void> {
  constructor(
    readonly by: AuditedWriter,
    readonly userId: number,
    readonly email: string,
    /** Sends the link, in the same transaction. */
    readonly send: (manager: EntityManager, link: AddressLink) => Promise<void>,
  ) {
    super();
  }
}

@CommandHandler(RequestAddressChange)
export class RequestAddressChangeHandler implements ICommandHandler<RequestAddressChange> {
  constructor(private readonly writes: AuditedWrites) {}

  /** @throws RejectedError */
  async execute({ by, userId, email: input, send }: RequestAddressChange): Promise<void> {
    const email = normalizeEmailAddress(input);
    if (!isEmailAddress(email)) throw new RejectedError({ email: [ISSUES.email_invalid] });
    const token = createSecret();
    await this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      // Locks the user, so that concurrent requests cannot exceed the limit.
      const { name } = await getPresentUser(manager, userId);
      const existing = await query(manager, {
        text: 'select from address_changes where sha256 = $1',
        values: [hashToken(token)],
      });
      if (existing.length > 0) return;
      await query(manager, {
        text: `delete from address_changes where user_id = $1 and created_at < now() - interval '1 day'`,
        values: [userId],
      });
      const [sent] = await query<{ count: number }>(manager, {
        text: `select count(*)::int as count from address_changes
         where user_id = $1 and created_at > now() - interval '1 hour'`,
        values: [userId],
      });
      if ((sent?.count ?? 0) >= MAX_PER_HOUR) {
        throw new RejectedError({ email: [ISSUES.email_changed_too_often] });
      }
      // Of several links only the newest works.
      await endAddressLinks(manager, userId);
      await query(manager, {
        text: `insert into address_changes (sha256, user_id, email, created_at, expires_at)
         values ($1, $2, $3, now(), now() + make_interval(hours => $4))`,
        values: [hashToken(token), userId, email, ADDRESS_LINK_HOURS],
      });
      const holder = await findUserByEmailKey(manager, getEmailKey(email));
      const isTaken = holder !== null && holder.id !== userId;
      await send(manager, { name, email, token, isTaken });
      await auditUser(transaction, userId, 'user.address_link_sent');
    });
  }
}

/** Replaces the address of a user. Links for a new password that went to the former one end with it. */
export class ConfirmAddress extends Command<void> {
  constructor(
    readonly by: AuditedWriter,
    readonly userId: number,
    readonly token: string,
    /** Notifies the former address, in the same transaction. */
    readonly notify: (manager: EntityManager, change: AddressChange) => Promise<void>,
  ) {
    super();
  }
}

@CommandHandler(ConfirmAddress)
export class ConfirmAddressHandler implements ICommandHandler<ConfirmAddress> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly confirmation: AddressConfirmation,
  ) {}

  /** @throws NotFoundError for a link that does not count any more, or is another user's. @throws RejectedError */
  async execute({ by, userId, token, notify }: ConfirmAddress): Promise<void> {
    const confirm = async (transaction: AuditedTransaction) => {
      const { manager, isRepeated } = transaction;
      // Of two concurrent requests only the first finds it unused.
      const [change] = await query<{ email: string }>(manager, {
        text: `update address_changes set used_at = now()
         where sha256 = $1 and user_id = $2 and used_at is null and expires_at > now() returning email`,
        values: [hashToken(token), userId],
      });
      if (!change && isRepeated) return;
      if (!change) throw new NotFoundError('Link');
      const { name, email: former } = await getPresentUser(manager, userId);
      const { email } = change;
      await manager.update(
        UserRow,
        { id: userId },
        { email, email_key: getEmailKey(email), email_confirmed_at: null },
      );
      await this.confirmation.confirm(transaction, userId, 'address_link');
      await endPasswordLinks(manager, userId);
      const changes = findUserChanges({ email: former }, { email });
      await auditUser(transaction, userId, 'user.updated', { changes });
      await notify(manager, { name, former, email });
    };
    await this.writes.write(by, confirm).catch(refuseTakenEmail);
  }
}

export const addressHandlers = [RequestAddressChangeHandler, ConfirmAddressHandler];

/** Finds the address that an open link of the user confirms. */
export async function findRequestedAddress(
  manager: EntityManager,
  userId: number,
  token: string,
): Promise<string | undefined> {
  const [open] = await query<{ email: string }>(manager, {
    text: `select email from address_changes
     where sha256 = $1 and user_id = $2 and used_at is null and expires_at > now()`,
    values: [hashToken(token), userId],
  });
  return open?.email;
}
