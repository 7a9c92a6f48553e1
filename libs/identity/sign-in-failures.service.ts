import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { Queryable } from '#platform/database/connection.js';
import { WindowCounts, type Count, type CountSubject } from '#platform/database/window-counts.js';

export const MAX_FAILURES = 10;

/** @property subject what the attempt was counted under */
export type FailureCount = Count & { subject: CountSubject };

/**
 * Counts failed sign-ins for an address, for all processes and across restarts. A browser that the user has signed in
 * with before has a count of its own, so that nobody can lock a user out by failing on purpose.
 */
@Injectable()
export class SignInFailures {
  constructor(
    private readonly pool: Pool,
    private readonly counts: WindowCounts,
  ) {}

  /**
   * Counts an attempt before the password is checked, so that attempts at the same time all count.
   * @param who the key of an address, or a user whose code is asked for
   * @param browser one that the user is known to use
   */
  async count(who: string, browser: Buffer | null): Promise<FailureCount> {
    const subject = ['sign-in failures', who, browser?.toString('base64') ?? ''];
    return { subject, ...(await this.counts.add(this.pool, subject, '15 minutes')) };
  }

  async forget(by: Queryable, { subject }: FailureCount): Promise<void> {
    await this.counts.forget(by, subject);
  }
}

export function hasTooManyFailures({ count }: FailureCount): boolean {
  return count > MAX_FAILURES;
}
