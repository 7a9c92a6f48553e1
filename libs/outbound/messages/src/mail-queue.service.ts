import { Injectable, Logger } from '@nestjs/common';
import { nextMailAttempt } from './mail.js';
import { MailOutbox, type QueuedMail } from './mail-outbox.service.js';
import type { MessageQueue } from './message-queue.js';
import { MessageMetrics } from './message-metrics.service.js';
import { SmtpClient } from './smtp.client.js';

/** Mails to users of stores and to operators, which are stored whole. */
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

  async send(mail: QueuedMail, cut: AbortSignal): Promise<void> {
    const outcome = await this.smtp.send(mail.id, mail, cut);
    this.metrics.attempted('mail', outcome.kind);
    if (outcome.kind === 'sent') {
      this.log.debug(`mail ${mail.id} was sent`);
      await this.outbox.remove(mail, 'sent');
      return;
    }
    const what = `mail ${mail.id} could not be sent (${outcome.error})`;
    const next =
      outcome.kind === 'failed'
        ? nextMailAttempt(mail.attempts, mail.createdAt, new Date(), mail.giveUpAt ?? undefined)
        : undefined;
    if (next) {
      this.log.warn(`${what}; next attempt at ${next.toISOString()}`);
      await this.outbox.putOff(mail, next);
    } else {
      this.log.error(`${what}, and is not tried again`);
      await this.outbox.remove(mail, 'given_up');
    }
  }
}
