import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { RejectedError } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import { Passwords } from '#identity/passwords.service.js';
import type { SignedIn } from '#identity/sessions.service.js';
import { isTooMany, SignInFailures } from '#identity/sign-in-failures.service.js';
import { waitText } from './form-text.js';

/** Asks for the password again before what would let somebody else take over the account. */
@Injectable()
export class Reentry {
  constructor(
    private readonly pool: Pool,
    private readonly passwords: Passwords,
    private readonly failures: SignInFailures,
  ) {}

  /** @param field of the form that asks for it @throws RejectedError */
  async require({ userId }: SignedIn, given: string | undefined, field: string): Promise<void> {
    const counted = await this.failures.count(`password of user ${userId}`, null);
    if (isTooMany(counted)) {
      throw new RejectedError({
        [field]: [`was wrong too often: wait ${waitText(counted.seconds)}`],
      });
    }
    const [user] = await ask<{ password_hash: string }>(this.pool, {
      name: 'reentry_password',
      text: 'select password_hash from users where id = $1',
      values: [userId],
    });
    if (!(await this.passwords.matches(user?.password_hash, given ?? ''))) {
      throw new RejectedError({ [field]: ['is wrong'] });
    }
    await this.failures.forget(this.pool, counted);
  }
}
