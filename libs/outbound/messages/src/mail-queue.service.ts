import { Injectable, Logger } from '@nestjs/common';
import { findNextMailAttempt, type MailOutcome } from './mail.js';
import { MailOutbox, type QueuedMail } from './mail-outbox.service.js';
import type { MessageQueue } from './message-queue.js';
import { MessageMetrics } from './message-metrics.service.js';
import { SmtpClient } from './smtp.client.js';

const NOT_OPENED: MailOutcome = {
  kind: 'failed',
  error: 'cannot be decrypted with the master key. Check that MASTER_KEY belongs to this database',
};

/** Sends mails to users of stores and to operators, which are stored as a whole. */
@Injectable()
export class MailQueue implements MessageQueue<QueuedMail> {
  readonly name = 'mails';
  private readonly log = new Logger('mail');

  constructor(
    private readonly outbox: MailOutbox,
    private readonly smtp: SmtpClient,
    private readonly metrics: MessageMetrics,
  ) {}

  claim(limit: number): Promise<QueuedMail[]> {
    return this.outbox.claim(limit);
  }

  /** Sends a mail. One that cannot be decrypted is retried like any other, and meanwhile the operator is alerted. */
  async send(queued: QueuedMail, cut: AbortSignal): Promise<void> {
    const { id, mail } = queued;
    const outcome = mail ? await this.smtp.send(id, mail, cut) : NOT_OPENED;
    this.metrics.countAttempt('mail', outcome.kind);
    if (outcome.kind === 'sent') {
      this.log.debug(`mail ${id} was sent`);
      await this.outbox.remove(queued, 'sent');
      return;
    }
    const what = `mail ${id} could not be sent (${outcome.error})`;
    const next =
      outcome.kind === 'failed'
        ? findNextMailAttempt(queued.attempts, queued.createdAt, new Date(), queued.giveUpAt)
        : undefined;
    if (next) {
      this.log[mail ? 'warn' : 'error'](`${what}; next attempt at ${next.toISOString()}`);
      await this.outbox.putOff(queued, next);
    } else {
      this.log.error(`${what}, and is not tried again`);
      await this.outbox.remove(queued, 'given_up');
    }
  }
}
