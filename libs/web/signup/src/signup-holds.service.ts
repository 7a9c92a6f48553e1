import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#kernel/config.js';
import { ask } from '#database/connection.js';
import { DailyCounts, type RunQuery } from '#database/daily-counts.js';
import { networkKey } from '#http/rate-limit.js';
import type { MessageChannel } from '#messages/card-message.js';
import type { Signup } from './signup-form.js';

/** Of what a store sends in a day, one network may ask for one part in so many. */
const NETWORKS = 10;
/** Longer than wishes wait to be planned. */
const KEPT = `interval '4 days'`;

const HOLD = {
  name: 'signup_holds_add',
  text: `
    with past as (
      delete from signup_holds where (account_id, request_id) in (
        select account_id, request_id from signup_holds where until < now()
        order by until limit 10 for update skip locked)
    )
    insert into signup_holds as h (account_id, request_id, channels, until)
    values ($1, $2, $3, now() + ${KEPT})
    on conflict (account_id, request_id) do update
    set channels = array(select distinct unnest(h.channels || excluded.channels))`,
};

/** @property ip of whoever signs up */
type Visit = { accountId: number; requestId: string; ip: string };

/**
 * Keeps a stranger from spending what a store may send in a day, for which real customers would then wait: one network may
 * ask for a tenth of it. Messages beyond that are held, and are in the store's outbox.
 */
@Injectable()
export class SignupHolds {
  constructor(
    private readonly pool: Pool,
    private readonly counts: DailyCounts,
    private readonly config: Config,
  ) {}

  /**
   * Counts the messages that a signup asks for, and notes through which channels they are not sent by themselves. To be
   * called before the signup is recorded: once it is, its messages are planned at any moment.
   * @returns these channels
   */
  async note(visit: Visit, { phone }: Pick<Signup, 'phone'>): Promise<MessageChannel[]> {
    const held: MessageChannel[] = [];
    // Also without an address in the form: that of a customer who is known may be on file.
    if (!(await this.countMail(visit))) held.push('email');
    // Where the mail server does not know the address, the message goes to the number.
    if (phone === null || !(await this.countSms(visit))) held.push('sms');
    if (held.length === 0) return held;
    const { accountId, requestId } = visit;
    await ask(this.pool, { ...HOLD, values: [accountId, requestId, held] });
    return held;
  }

  private async countMail({ accountId, ip }: Visit): Promise<boolean> {
    const { signupMailsPerDay } = this.config.most;
    const network = ['signup mails of a network', accountId, networkKey(ip)];
    if (!(await this.isWithin(network, share(signupMailsPerDay)))) return false;
    return this.isWithin(['signup mails', accountId], signupMailsPerDay);
  }

  private countSms({ accountId, ip }: Visit): Promise<boolean> {
    const network = ['signup SMS of a network', accountId, networkKey(ip)];
    return this.isWithin(network, share(this.config.most.smsPerDay));
  }

  private async isWithin(subject: (string | number)[], limit: number): Promise<boolean> {
    const query: RunQuery = (text, values) => ask(this.pool, { text, values });
    return (await this.counts.count(query, subject, limit)) === null;
  }
}

function share(limit: number): number {
  return Math.max(1, Math.floor(limit / NETWORKS));
}
