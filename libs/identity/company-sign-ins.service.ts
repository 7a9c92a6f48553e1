import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { findEmailKey } from '#platform/kernel/email-address.js';
import { query } from '#platform/database/connection.js';
import { AuditedWrites } from '#platform/event-store/commands/audited-writes.service.js';
import { AddressConfirmation } from './address-confirmation.service.js';
import { Sessions } from './sessions.service.js';
import { SignIns, type NewSession, type Visitor } from './sign-ins.service.js';
import { createUserWriter } from './user-audit.service.js';

/**
 * A person who has signed in with a company.
 * @property email null: none that it has confirmed
 * @property hasSecondFactor the company says that it has asked for a second factor
 */
export type CompanyPerson = {
  issuer: string;
  subject: string;
  email: string | null;
  hasSecondFactor: boolean;
};

export type CompanyOutcome =
  /** @property hasEndedAccess what somebody had left in the account was ended */
  | { kind: 'in'; signedIn: NewSession; hasEndedAccess: boolean }
  /**
   * The user needs a second factor, which the company has not asked for.
   * @property session with which the code has to come
   */
  | { kind: 'code'; session: string }
  /** Nobody has the address here. */
  | { kind: 'unknown' }
  /** The account belongs to another person at the same company. */
  | { kind: 'taken' };

/** Finds the user by the company's subject, which never changes, or else by address. The address counts only once. */
const FIND_USER = {
  name: 'company_sign_ins_find',
  text: `
    select u.id from company_sign_ins c join users u on u.id = c.user_id
    where c.issuer = $1 and c.subject = $2 and u.removed_at is null
    union all
    select u.id from users u where u.email_key = $3 and u.removed_at is null
      and not exists (select from company_sign_ins c where c.issuer = $1 and c.subject = $2)`,
};

/**
 * Signs users in by a company. The first sign-in of a person binds them to the user with their address (OpenID Connect
 * Core, section 5.7). From then on the address does not matter, and nobody else with it can sign in.
 */
@Injectable()
export class CompanySignIns {
  constructor(
    private readonly pool: Pool,
    private readonly writes: AuditedWrites,
    private readonly signIns: SignIns,
    private readonly sessions: Sessions,
    private readonly confirmation: AddressConfirmation,
  ) {}

  async signIn(visitor: Visitor, person: CompanyPerson): Promise<CompanyOutcome> {
    const { issuer, subject, email } = person;
    const key = email === null ? null : (findEmailKey(email) ?? null);
    const values = [issuer, subject, key];
    const [candidate] = await query<{ id: number }>(this.pool, { ...FIND_USER, values });
    if (!candidate) return { kind: 'unknown' };
    const { id: userId } = candidate;
    return this.writes.write(createUserWriter(visitor, userId), async (transaction) => {
      const { manager } = transaction;
      const [user] = await query<{ email_key: string | null; linked_subject: string | null }>(
        manager,
        {
          text: `select u.email_key, (select c.subject from company_sign_ins c
           where c.user_id = u.id and c.issuer = $2) as linked_subject
         from users u where u.id = $1 and u.removed_at is null for no key update of u`,
          values: [userId, issuer],
        },
      );
      if (!user) return { kind: 'unknown' };
      if (user.linked_subject !== null && user.linked_subject !== subject) return { kind: 'taken' };
      const isSame = key !== null && user.email_key === key;
      let hasEndedAccess = false;
      if (user.linked_subject === null) {
        // Somebody else has the address since it was looked up.
        if (!isSame) return { kind: 'unknown' };
        const [link] = await query(manager, {
          text: `insert into company_sign_ins (issuer, subject, user_id, created_at) values ($1, $2, $3, now())
           on conflict do nothing returning subject`,
          values: [issuer, subject, userId],
        });
        if (!link) return { kind: 'taken' };
        hasEndedAccess = await this.confirmation.confirmByCompany(transaction, userId);
      } else if (isSame) {
        await this.confirmation.confirm(transaction, userId, 'company');
      }
      const { hasSecondFactor } = person;
      if (!hasSecondFactor && (await this.sessions.needsCode(manager, userId))) {
        const pending = { awaitsCode: true, isByCompany: true, userAgent: visitor.userAgent };
        return { kind: 'code', session: await this.sessions.begin(manager, userId, pending) };
      }
      const signedIn = await this.signIns.startSession(transaction, visitor, userId, {
        method: 'company',
        isByCompany: true,
        secondFactor: hasSecondFactor ? 'company' : null,
      });
      return { kind: 'in', signedIn, hasEndedAccess };
    });
  }
}
