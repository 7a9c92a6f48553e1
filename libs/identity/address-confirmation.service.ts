import { Injectable } from '@nestjs/common';
import { createSecret } from '#platform/kernel/randomness.js';
import { query } from '#platform/database/connection.js';
import type { AuditedTransaction } from '#platform/event-store/commands/audited-writes.service.js';
import { confirmAddress, type ConfirmedBy } from './identity.commands.js';
import { UserRow } from './identity.entity.js';
import { hashPassword } from './passwords.service.js';
import { Sessions } from './sessions.service.js';
import { revokeTokens } from './token.commands.js';
import { auditUser } from './user-audit.service.js';
import { endAddressLinks, endPasswordLinks } from './user.commands.js';

/**
 * Confirms that a user reads the e-mails to their address. Anybody may have created an account with it before, so the
 * access that they left in the account ends where its owner cannot see it.
 */
@Injectable()
export class AddressConfirmation {
  constructor(private readonly sessions: Sessions) {}

  /** Confirms without an end of any access. @returns whether the address was not confirmed until now */
  confirm(transaction: AuditedTransaction, userId: number, by: ConfirmedBy): Promise<boolean> {
    return confirmAddress(transaction, userId, by);
  }

  /** Confirms by a link for a new password. The second factor stays: a mailbox alone must not replace it. */
  async confirmByPasswordLink(transaction: AuditedTransaction, userId: number): Promise<void> {
    if (!(await this.confirm(transaction, userId, 'password_link'))) return;
    await this.endAccess(transaction, userId, {});
  }

  /**
   * Confirms by a company, whose people sign in without password and codes.
   * @returns whether anything ended that the user may miss
   */
  async confirmByCompany(transaction: AuditedTransaction, userId: number): Promise<boolean> {
    if (!(await this.confirm(transaction, userId, 'company'))) return false;
    const { manager } = transaction;
    const password_hash = await hashPassword(createSecret());
    await manager.update(UserRow, { id: userId }, { password_hash, password_expires_at: null });
    await query(manager, 'delete from recovery_codes where user_id = $1', [userId]);
    const factors = await query(manager, {
      text: 'delete from second_factors where user_id = $1 returning user_id',
      values: [userId],
    });
    await this.endAccess(transaction, userId, {
      password_removed: true,
      second_factor_removed: factors.length > 0,
    });
    return true;
  }

  private async endAccess(
    transaction: AuditedTransaction,
    userId: number,
    more: object,
  ): Promise<void> {
    const { manager } = transaction;
    const sessions = await this.sessions.endAll(manager, userId);
    await query(manager, 'delete from known_browsers where user_id = $1', [userId]);
    await query(manager, 'delete from counter_pins where user_id = $1', [userId]);
    await endPasswordLinks(manager, userId);
    await endAddressLinks(manager, userId);
    const tokens_revoked = await revokeTokens(transaction, userId);
    await auditUser(transaction, userId, 'user.access_ended', {
      sessions_ended: sessions,
      tokens_revoked,
      ...more,
    });
  }
}
