import { Injectable, Logger } from '@nestjs/common';
import { Config } from '#kernel/config.js';
import { messageOf } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { isDatabaseUnavailable } from '#database/connection.js';
import { nextMailAttempt } from './mail.js';
import { MailOutbox, type QueuedMail } from './mail-outbox.service.js';
import { SmtpClient } from './smtp.client.js';

const AT_ONCE = 4;
const ROUND_MS = 1_000;

/**
 * Sends the mails in the outbox. Runs apart from the webhooks, so that a mail server that hangs delays nothing else.
 */
@Injectable()
export class MailDispatch {
  private readonly log = new Logger('mail');
  private readonly stopping = new AbortController();
  private readonly cut = new AbortController();
  private running: Promise<void> = Promise.resolve();

  constructor(
    private readonly outbox: MailOutbox,
    private readonly smtp: SmtpClient,
    private readonly config: Config,
  ) {}

  start(): void {
    if (this.config.mail !== null) this.running = this.run(this.stopping.signal);
  }

  /** Attempts that take longer than the time allowed are cut off; their mails are sent again later. */
  async stop(milliseconds: number): Promise<void> {
    this.stopping.abort();
    const late = setTimeout(() => this.cut.abort(), milliseconds);
    await this.running;
    clearTimeout(late);
  }

  private async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const mails = await this.outbox.claim(AT_ONCE);
        // Wait for all of them before claiming more, even when one fails.
        for (const sent of await Promise.allSettled(mails.map((mail) => this.send(mail)))) {
          if (sent.status === 'rejected') throw sent.reason;
        }
        if (mails.length === AT_ONCE) continue;
      } catch (error) {
        const level = isDatabaseUnavailable(error) ? 'warn' : 'error';
        this.log[level](`the outbox cannot be processed: ${messageOf(error)}`);
      }
      await pause(ROUND_MS, signal);
    }
  }

  private async send(mail: QueuedMail): Promise<void> {
    const outcome = await this.smtp.send(mail.id, mail, this.cut.signal);
    if (outcome.kind === 'sent') {
      this.log.debug(`mail ${mail.id} was sent`);
      await this.outbox.remove(mail);
      return;
    }
    const what = `mail ${mail.id} could not be sent (${outcome.error})`;
    const next =
      outcome.kind === 'failed'
        ? nextMailAttempt(mail.attempts, mail.createdAt, new Date())
        : undefined;
    if (next) {
      this.log.warn(`${what}; next attempt at ${next.toISOString()}`);
      await this.outbox.putOff(mail, next);
    } else {
      this.log.error(`${what}, and is not tried again`);
      await this.outbox.remove(mail);
    }
  }
}
