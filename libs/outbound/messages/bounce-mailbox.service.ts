import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { FailureLog } from '#platform/kernel/failure-log.js';
import { pause } from '#platform/kernel/pause.js';
import { isTransient, query } from '#platform/database/connection.js';
import { LeaderLock } from '#platform/database/leader-lock.js';
import { LOCKS } from '#platform/database/locks.js';
import { Maintenance } from '#platform/database/maintenance.service.js';
import { renderSurvivorId } from '#loyalty/stamping/same-person.js';
import { stopMessages } from './message-stops.service.js';
import { isComplaintAbout, parseReport, type MailReport } from './bounce-report.js';
import { EmailBounces } from './email-bounces.service.js';
import { describeMailboxError, Mailbox } from './mailbox.client.js';

const LEADERSHIP = { name: 'bounces', lock: LOCKS.bounces };
const POLL_INTERVAL_MS = 60_000;
const MIN_INTERVAL_MS = 500;
/** Mails of one connection. The others are read a minute later. */
const MAX_MAILS = 500;
const ROUND_TIMEOUT_MS = 5 * 60_000;
/** After so many rounds in which a mail could not be read or recorded, it is left where it is. */
const MAX_ATTEMPTS = 3;

/** An e-mail that was sent, and the customer who has its address now: of somebody merged, the one who goes on. */
type SentEmail = {
  uuid: string;
  account_id: number;
  customer_id: number;
  email: string | null;
  card_id: number | null;
  sent_at: Date;
};

const FIND = {
  name: 'bounces_find_message',
  text: `select m.uuid, m.account_id, c.id as customer_id, n.email, coalesce(m.finished_at, now()) as sent_at,
           coalesce(m.customer_card_id, (select k.id from customer_cards k where k.customer_id = c.id limit 1)) as card_id
         from outgoing_messages m
         join customers c on c.id = ${renderSurvivorId('m.customer_id')}
         join customer_names n on n.id = c.id
         where m.uuid = any ($1) and m.kind <> 'mail' and c.erased_at is null`,
};

/**
 * Reads what mail servers report of our e-mails, and stops addresses that take none and messages that people complain
 * of. A report counts only if we sent that message, and to the address that its customer has now: anybody can write to the
 * mailbox. One process does this at a time. A mail is marked as seen once it has had its effect, which a repetition does not
 * change.
 */
@Injectable()
export class BounceMailbox {
  private readonly log = new Logger(LEADERSHIP.name);
  private readonly failures = new FailureLog(this.log);
  /** How often a mail could not be read or recorded. */
  private readonly attempts = new Map<number, number>();

  constructor(
    private readonly pool: Pool,
    private readonly bounces: EmailBounces,
    private readonly maintenance: Maintenance,
    private readonly lock: LeaderLock,
    private readonly config: Config,
  ) {}

  /** Runs until the signal aborts, whatever happens to the mailbox and the database. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.config.bounceMailbox === null) return;
    const intervalMs = Math.max(MIN_INTERVAL_MS, POLL_INTERVAL_MS / this.config.webhookTimeScale);
    await this.lock.lead(LEADERSHIP, signal, async (leading) => {
      while (!leading.aborted) {
        await this.readOnce(leading);
        await pause(intervalMs, leading);
      }
    });
  }

  private async readOnce(leading: AbortSignal): Promise<void> {
    try {
      if (await this.maintenance.find()) return;
      await this.read(AbortSignal.any([leading, AbortSignal.timeout(ROUND_TIMEOUT_MS)]));
      this.failures.succeed('the mailbox of BOUNCE_MAILBOX_URL can be read again');
    } catch (error) {
      if (leading.aborted) return;
      this.failures.fail(
        `reports wait in the mailbox of BOUNCE_MAILBOX_URL: ${describeMailboxError(error)}`,
      );
    }
  }

  private async read(signal: AbortSignal): Promise<void> {
    const { bounceMailbox, outboundProxy } = this.config;
    if (bounceMailbox === null) return;
    const mailbox = await Mailbox.open(bounceMailbox, outboundProxy, signal);
    try {
      const unseen = await mailbox.listUnseen();
      for (const uid of this.attempts.keys()) if (!unseen.includes(uid)) this.attempts.delete(uid);
      const due = unseen.filter((uid) => (this.attempts.get(uid) ?? 0) < MAX_ATTEMPTS);
      for (const uid of due.slice(0, MAX_MAILS)) {
        signal.throwIfAborted();
        const attempts = (this.attempts.get(uid) ?? 0) + 1;
        this.attempts.set(uid, attempts);
        const report = parseReport(await mailbox.readReport(uid));
        if (report && !(await this.tryToRecord(report, uid, attempts))) continue;
        await mailbox.markSeen(uid);
        this.attempts.delete(uid);
      }
    } finally {
      await mailbox.close();
    }
  }

  /**
   * Records a report. One that cannot be recorded holds up no other one.
   * @returns whether it was recorded
   * @throws when the database is away, which says nothing about the report
   */
  private async tryToRecord(report: MailReport, uid: number, attempts: number): Promise<boolean> {
    try {
      await this.record(report);
      return true;
    } catch (error) {
      if (isTransient(error)) {
        this.attempts.delete(uid);
        throw error;
      }
      const next = attempts < MAX_ATTEMPTS ? 'it is tried again' : 'it stays unseen in the mailbox';
      this.log.error(
        `the report about message ${report.messageIds.join(' or ')} cannot be recorded (${getErrorMessage(error)}): ${next}`,
        error instanceof Error ? error.stack : undefined,
      );
      return false;
    }
  }

  private async record({ messageIds, bounces, complaint }: MailReport): Promise<void> {
    const rows = await query<SentEmail>(this.pool, { ...FIND, values: [messageIds] });
    const sent = messageIds.map((id) => rows.find(({ uuid }) => uuid === id)).find((row) => row);
    if (!sent) return;
    const {
      uuid: messageId,
      account_id: accountId,
      customer_id: customerId,
      email,
      card_id: cardId,
    } = sent;
    for (const { address, status } of bounces) {
      await this.bounces.record({
        accountId,
        customerId,
        messageId,
        address,
        status,
        sentAt: sent.sent_at,
      });
    }
    if (!complaint || !isComplaintAbout(complaint, email) || cardId === null) return;
    await stopMessages(this.pool, { id: cardId, accountId });
    this.log.log(`the recipient of message ${messageId} complained: messages to them are stopped`);
  }
}
