import { Injectable, Logger } from '@nestjs/common';
import type { Job, JobOutcome } from '#platform/database/job-queue.js';
import type { JobHandler } from '#platform/database/job-runner.js';
import { MailOutbox, type QueuedMail } from './mail-outbox.service.js';
import { MessageMetrics } from './message-metrics.service.js';
import { SmtpClient } from './smtp.client.js';

const CONCURRENCY = 4;
const NOT_OPENED = {
  kind: 'failed',
  error: 'cannot be decrypted with the master key. Check that MASTER_KEY belongs to this database',
} as const;

/** Sends e-mails to users of stores and to operators, which are stored as a whole. */
@Injectable()
export class MailQueue {
  private readonly log = new Logger('mail');

  constructor(
    private readonly outbox: MailOutbox,
    private readonly smtp: SmtpClient,
    private readonly metrics: MessageMetrics,
  ) {}

  createHandler(): JobHandler<QueuedMail> {
    return {
      queue: this.outbox,
      concurrency: CONCURRENCY,
      claim: (limit) => this.outbox.claim(limit),
      describeFailure: ({ id }) => `mail ${id} could not be sent`,
      attempt: (queued, cut, isLeased) => this.attempt(queued, cut, isLeased),
      getGiveUpAt: ({ giveUpAt }) => giveUpAt,
    };
  }

  /** Sends an e-mail. One that cannot be decrypted is retried like any other, and meanwhile the operator is alerted. */
  private async attempt(
    queued: Job<QueuedMail>,
    cut: AbortSignal,
    isLeased: () => boolean,
  ): Promise<JobOutcome> {
    const mail = this.outbox.open(queued);
    if (!mail) this.log.error(`mail ${queued.id} ${NOT_OPENED.error}`);
    const outcome = mail ? await this.smtp.send(queued.id, mail, cut, isLeased) : NOT_OPENED;
    this.metrics.countAttempt('mail', outcome.kind);
    return outcome.kind === 'sent' ? { kind: 'done' } : outcome;
  }
}
