import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Pool } from 'pg';
import { RejectedError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { RepeatedAudits } from '#platform/event-store/commands/repeated-audits.service.js';
import { getAddressKey } from '#platform/http/rate-limit.js';
import { Passwords } from '#identity/passwords.service.js';
import { Sessions, type SignedInUser } from '#identity/sessions.service.js';
import { hasTooManyFailures, SignInFailures } from '#identity/sign-in-failures.service.js';
import { auditUser, createUserWriter } from '#identity/user-audit.service.js';
import { assertNotKept, type ConsoleRequest } from '#web/pages/current-user.js';
import { SessionCookies } from './session-cookies.service.js';
import { ISSUES } from '#translations/issues.js';
import { localizeRequest } from '#web/pages/localize.js';
import { describeRejection } from '#web/pages/form-errors.js';

/** The request and the response that cookies belong to. */
export type HttpExchange = { request: FastifyRequest; reply: FastifyReply };

/** Asks for the password again (step-up) before what could give the thief of a session lasting access (ADR-0140). */
@Injectable()
export class Reauthentication {
  constructor(
    private readonly pool: Pool,
    private readonly passwords: Passwords,
    private readonly failures: SignInFailures,
    private readonly sessions: Sessions,
    private readonly sessionCookies: SessionCookies,
    private readonly repeatedAudits: RepeatedAudits,
  ) {}

  /**
   * Asserts the password and renews the session token, which locks out anybody with a copied cookie. Only for forms that
   * are not executed once.
   * @param field of the form that asks for it
   * @throws RejectedError
   */
  async requirePassword(
    signedIn: SignedInUser,
    password: string | undefined,
    field: string,
    { request, reply }: HttpExchange,
  ): Promise<void> {
    await this.assertPassword(signedIn, password, field, request);
    await this.renewSession(signedIn, { request, reply });
  }

  /** Asserts the password where nothing but its errors is shown. @returns them; empty: it is right */
  async findPasswordErrors(
    signedIn: SignedInUser,
    password: string | undefined,
    request: FastifyRequest,
  ): Promise<readonly string[]> {
    assertNotKept(request);
    try {
      await this.assertPassword(signedIn, password, 'password', request);
      return [];
    } catch (error) {
      const { fields } = describeRejection(error, localizeRequest(request));
      return fields['password'] ?? [];
    }
  }

  /**
   * Asserts the password, unless a company has just said who the user is. It leaves the session token as it is: a form
   * that is sent twice has to find its session (ADR-0113).
   * @throws RejectedError
   */
  async assertPassword(
    { userId, asksPassword }: SignedInUser,
    password: string | undefined,
    field: string,
    request: FastifyRequest,
  ): Promise<void> {
    if (!asksPassword) return;
    // A kept form comes without it, which is no wrong one.
    assertNotKept(request);
    const attempt = await this.failures.count(`password of user ${userId}`, null);
    if (hasTooManyFailures(attempt)) {
      const minutes = Math.ceil(attempt.seconds / 60);
      throw new RejectedError({ [field]: [ISSUES.too_many_attempts({ minutes })] });
    }
    const [user] = await query<{ password_hash: string; has_company: boolean }>(this.pool, {
      name: 'reauthentication_password',
      text: `select password_hash, exists (select from company_sign_ins c where c.user_id = u.id) as has_company
             from users u where id = $1`,
      values: [userId],
    });
    if (!(await this.passwords.matches(user?.password_hash, password ?? ''))) {
      await this.recordFailure(userId, request as ConsoleRequest);
      throw new RejectedError({
        [field]: [user?.has_company ? ISSUES.password_wrong_with_company : ISSUES.password_wrong],
      });
    }
    await this.failures.forget(this.pool, attempt);
  }

  /** Audits the failure: a stolen session is used here to guess the password. */
  private async recordFailure(userId: number, request: ConsoleRequest): Promise<void> {
    const kind = ['password again', userId, getAddressKey(request.ipAddress)];
    await this.repeatedAudits.write(createUserWriter(request, userId), kind, (transaction, times) =>
      auditUser(transaction, userId, 'user.reauthentication_failed', { times }),
    );
  }

  /**
   * Renews the session token.
   * @param hasEnteredCode the user has just set up the codes
   */
  async renewSession(
    current: SignedInUser,
    { request, reply }: HttpExchange,
    hasEnteredCode = false,
  ): Promise<void> {
    const { token, signedIn } = await this.sessions.renew(current, hasEnteredCode);
    this.sessionCookies.setSession(reply, token);
    // The response may be a page with forms, which need the new CSRF token.
    (request as ConsoleRequest).signedIn = signedIn;
  }
}
