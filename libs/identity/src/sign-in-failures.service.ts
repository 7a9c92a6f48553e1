import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { fingerprint } from '#kernel/sealing.js';
import { query } from '#database/connection.js';
import { renderCount } from '#database/expiring-count.js';
import { MasterKeys } from '#database/master-keys.js';

export const MAX_FAILURES = 10;

const COUNT = {
  name: 'sign_in_failures_count',
  text: renderCount('sign_in_failures', 'failures', '15 minutes'),
};

type Queries = { query: (text: string, values: unknown[]) => Promise<unknown> };

/** @property key what the attempt was counted under */
export type FailureCount = { key: Buffer; failures: number; seconds: number };

/**
 * Counts failed sign-ins for an address, for all processes and across restarts. A browser that the user has signed in
 * with before has a count of its own, so that nobody can lock a user out by failing on purpose.
 */
@Injectable()
export class SignInFailures {
  constructor(
    private readonly pool: Pool,
    private readonly keys: MasterKeys,
  ) {}

  /**
   * Counts an attempt before the password is checked, so that attempts at the same time all count.
   * @param subject the key of an address, or a user whose code is asked for
   * @param browser one that the user is known to use
   */
  async count(subject: string, browser: Buffer | null): Promise<FailureCount> {
    const key = fingerprint(
      this.keys.getDataKey('sign-in failures'),
      subject,
      browser?.toString('base64') ?? '',
    );
    const [row] = await query<Omit<FailureCount, 'key'>>(this.pool, { ...COUNT, values: [key] });
    if (!row) throw new Error('counting an attempt returned nothing');
    return { key, ...row };
  }

  async forget(database: Queries, { key }: FailureCount): Promise<void> {
    await database.query('delete from sign_in_failures where key = $1', [key]);
  }
}

export function hasTooManyFailures({ failures }: FailureCount): boolean {
  return failures > MAX_FAILURES;
}
