import { Injectable } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'pg';
import type { RequestSource } from '#platform/kernel/aggregate.js';
import { Config } from '#configuration/config.js';
import { RejectedError } from '#platform/kernel/errors.js';
import { findEmailKey } from '#platform/kernel/email-address.js';
import { createSecret } from '#platform/kernel/randomness.js';
import { query } from '#platform/database/connection.js';
import {
  AuditedWrites,
  type AuditedTransaction,
  type AuditedWriter,
} from '#platform/event-store/commands/audited-writes.service.js';
import { AddressConfirmation } from '#identity/address-confirmation.service.js';
import { Passwords } from '#identity/passwords.service.js';
import { SignIns, type Visitor } from '#identity/sign-ins.service.js';
import { hashToken } from '#identity/token.js';
import { auditUser, createSystemWriter, createUserWriter } from '#identity/user-audit.service.js';
import { getPresentUser, SetPassword } from '#identity/user.commands.js';
import { MailOutbox } from '#outbound/messages/mail-outbox.service.js';
import { createResetMail } from './reset-mail.js';
import { findUserTranslations } from './user-translations.service.js';
import { ISSUES } from '#translations/issues.js';

const MAX_PER_HOUR = 3;
/** Longer than storing an e-mail takes, so that the response time does not reveal whether a user exists. */
const RESPONSE_DELAY_MS = 400;

type UserRow = { id: number; name: string; email: string };

/** @property endsTokens the address was never confirmed, so the account's API tokens end with the password */
export type LinkedUser = UserRow & { endsTokens: boolean };

const FIND_USER = {
  name: 'password_resets_find',
  text: `select u.id, u.name, u.email, u.email_confirmed_at is null and exists (
           select from api_tokens t where t.user_id = u.id and t.revoked_at is null
             and (t.expires_at is null or t.expires_at > now())) as "endsTokens"
         from password_resets r join users u on u.id = r.user_id
         where r.sha256 = $1 and r.used_at is null and r.expires_at > now() and u.removed_at is null`,
};

/** Sends links to set a new password. Each works once, for an hour; only its hash is stored. */
@Injectable()
export class PasswordResets {
  constructor(
    private readonly pool: Pool,
    private readonly writes: AuditedWrites,
    private readonly outbox: MailOutbox,
    private readonly signIns: SignIns,
    private readonly passwords: Passwords,
    private readonly confirmation: AddressConfirmation,
    private readonly bus: CommandBus,
    private readonly config: Config,
  ) {}

  /** False without a mail server. */
  get isPossible(): boolean {
    return this.config.mail !== null;
  }

  /** Sends a link. Behaves the same whether the user exists or not. */
  async requestLink(source: RequestSource, email: string): Promise<void> {
    await Promise.all([this.send(source, email), wait(RESPONSE_DELAY_MS)]);
  }

  /** Finds the user of a link; undefined once it was used or has expired. */
  async find(token: string): Promise<LinkedUser | undefined> {
    const [user] = await query<LinkedUser>(this.pool, { ...FIND_USER, values: [hashToken(token)] });
    return user;
  }

  /**
   * Sets the password.
   * @returns the value of the trusted-browser cookie; undefined if the link was used
   * @throws RejectedError for an unacceptable password
   */
  async use(visitor: Visitor, token: string, password: string): Promise<string | undefined> {
    const user = await this.find(token);
    if (!user) return undefined;
    await this.passwords.assertAcceptable(password, { ...user, userId: user.id });
    const by = createUserWriter(visitor, user.id);
    const browser = await this.writes.write(by, async (transaction) => {
      const { manager, isRepeated } = transaction;
      // Of two concurrent requests, one finds the link used.
      const rows = await query(manager, {
        text: 'update password_resets set used_at = now() where sha256 = $1 and used_at is null returning user_id',
        values: [hashToken(token)],
      });
      if (rows.length === 0 && !isRepeated) return undefined;
      await this.confirmation.confirmByPasswordLink(transaction, user.id);
      return this.signIns.trustBrowser(transaction, visitor, user.id);
    });
    if (browser === undefined) return undefined;
    await this.bus.execute(new SetPassword(by, user.id, password));
    return browser;
  }

  /**
   * Sends a link for an operator.
   * @throws NotFoundError, RejectedError without a mail server, or after too many links
   */
  async sendTo(by: AuditedWriter, userId: number): Promise<void> {
    if (!this.isPossible) {
      throw new RejectedError(
        { base: [ISSUES.no_emails] },
        'validation_failed',
        'Set a password instead, or have a mail server set up.',
      );
    }
    await this.writes.write(by, async (transaction) => {
      const { id, name, email } = await getPresentUser(transaction.manager, userId);
      if (await this.addLink(transaction, { id, name, email })) return;
      throw new RejectedError(
        { base: [ISSUES.too_many_links({ max: MAX_PER_HOUR })] },
        'limit_reached',
        'Have the user look for the e-mails, or try again in an hour.',
      );
    });
  }

  private async send(source: RequestSource, email: string): Promise<void> {
    const key = findEmailKey(email);
    if (!this.isPossible || key === undefined) return;
    await this.writes.write(createSystemWriter(source), async (transaction) => {
      const { manager } = transaction;
      const [user] = await query<UserRow>(manager, {
        text: `select id, name, email from users where email_key = $1 and removed_at is null for update`,
        values: [key],
      });
      if (user) await this.addLink(transaction, user);
    });
  }

  /**
   * Stores a link, and the e-mail with it.
   * @returns false: there were too many within the hour
   */
  private async addLink(transaction: AuditedTransaction, user: UserRow): Promise<boolean> {
    const { manager } = transaction;
    const [recentLinks] = await query<{ count: number }>(manager, {
      text: `select count(*)::int as count from password_resets
         where user_id = $1 and created_at > now() - interval '1 hour'`,
      values: [user.id],
    });
    if ((recentLinks?.count ?? 0) >= MAX_PER_HOUR) return false;
    const token = createSecret();
    await query(manager, {
      text: `delete from password_resets where user_id = $1 and created_at < now() - interval '1 day'`,
      values: [user.id],
    });
    await query(manager, {
      text: `insert into password_resets (sha256, user_id, created_at, expires_at)
         values ($1, $2, now(), now() + interval '1 hour')`,
      values: [hashToken(token), user.id],
    });
    const link = `${this.config.publicUrl}/app/password/reset?token=${token}`;
    const mail = createResetMail(user, link, await findUserTranslations(manager, user.id));
    await this.outbox.add(manager, [mail]);
    await auditUser(transaction, user.id, 'user.password_link_sent');
    return true;
  }
}
