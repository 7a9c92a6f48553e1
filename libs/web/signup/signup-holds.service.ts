import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { query } from '#platform/database/connection.js';
import { WindowCounts, renderDeleteExpired } from '#platform/database/window-counts.js';
import { CapOverrides } from '#platform/event-store/commands/cap-overrides.service.js';
import { getNetworkKey } from '#platform/http/rate-limit.js';
import type { MessageChannel } from '#outbound/messages/message-channel.js';
import { calculateNetworkShare } from './network-share.js';
import type { Signup } from './signup-form.js';

/** Longer than message requests wait to be enqueued. */
const RETENTION = `interval '4 days'`;

const HOLD = {
  name: 'signup_holds_add',
  text: `
    with past as (${renderDeleteExpired('signup_holds', 'account_id, causation_id', '($1, $2)')}
    )
    insert into signup_holds as h (account_id, causation_id, channels, email_missing, phone_missing, until)
    values ($1, $2, $3, $4, $5, now() + ${RETENTION})
    on conflict (account_id, causation_id) do update
    set channels = array(select distinct unnest(h.channels || excluded.channels)),
      email_missing = h.email_missing or excluded.email_missing,
      phone_missing = h.phone_missing or excluded.phone_missing`,
};

const CHANNELS: MessageChannel[] = ['email', 'sms'];

/**
 * @property causationId the signup's own id, which its events have
 * @property ip the visitor's
 */
type Visit = { accountId: number; causationId: string; ip: string };

/**
 * Keeps a stranger from using up the messages that a store may send in a day: one network may use a tenth of them.
 * Further messages are held in the store's outbox.
 */
@Injectable()
export class SignupHolds {
  constructor(
    private readonly pool: Pool,
    private readonly counts: WindowCounts,
    private readonly overrides: CapOverrides,
    private readonly config: Config,
  ) {}

  /**
   * Counts the messages of a signup by the channels of the entered contacts, and stores the channels on which they are
   * held, and which contacts are missing. Call it before the signup is recorded: from then on, its messages may be enqueued
   * at any moment.
   * @returns the channels on which they are held
   */
  async hold(
    visit: Visit,
    { email, phone }: Pick<Signup, 'email' | 'phone'>,
  ): Promise<MessageChannel[]> {
    const enteredChannels: MessageChannel[] = [];
    const usedUpChannels: MessageChannel[] = [];
    if (email !== null) {
      enteredChannels.push('email');
      if (!(await this.countMail(visit))) usedUpChannels.push('email');
    }
    if (phone !== null) {
      enteredChannels.push('sms');
      if (!(await this.countSms(visit))) usedUpChannels.push('sms');
    }
    // A known customer may be reached at an address on file that was not entered: the share applies to that as well.
    const heldChannels =
      usedUpChannels.length === enteredChannels.length ? CHANNELS : usedUpChannels;
    if (heldChannels.length === 0 && email !== null && phone !== null) return heldChannels;
    const { accountId, causationId } = visit;
    await query(this.pool, {
      ...HOLD,
      values: [accountId, causationId, heldChannels, email === null, phone === null],
    });
    return heldChannels;
  }

  private async countMail({ accountId, ip }: Visit): Promise<boolean> {
    const { signup_mails_per_day: usual } = this.config.quotas;
    const { owner, max } = await this.overrides.getShare('signup_mails_per_day', accountId, usual);
    const network = ['signup mails of a network', owner, getNetworkKey(ip)];
    if (!(await this.isWithin(network, calculateNetworkShare(max)))) return false;
    return this.isWithin(['signup mails', owner], max);
  }

  private async countSms({ accountId, ip }: Visit): Promise<boolean> {
    const { sms_per_day: usual } = this.config.quotas;
    const { owner, max } = await this.overrides.getShare('sms_per_day', accountId, usual);
    const network = ['signup SMS of a network', owner, getNetworkKey(ip)];
    return this.isWithin(network, calculateNetworkShare(max));
  }

  private async isWithin(subject: (string | number)[], limit: number): Promise<boolean> {
    return (await this.counts.addUpTo(this.pool, subject, limit)) === null;
  }
}
