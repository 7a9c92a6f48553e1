import { Injectable, Logger } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import { JobRunner } from '#platform/database/job-runner.js';
import { QueueMetrics } from '#platform/database/queue-metrics.js';
import { CardMessageSending } from './card-message-sending.service.js';
import { MailQueue } from './mail-queue.service.js';

/** Sends queued e-mails and SMS. */
@Injectable()
export class MessageDispatch {
  private readonly runner = new JobRunner(new Logger('messages'));

  constructor(
    private readonly mails: MailQueue,
    private readonly cards: CardMessageSending,
    private readonly config: Config,
    private readonly metrics: QueueMetrics,
  ) {}

  /** Starts all queues. Card links are claimed even when nothing can send them: they are then held in the outbox. */
  start(): void {
    const { metrics, runner } = this;
    if (this.config.mail !== null) runner.start(metrics.watch('mail', this.mails.createHandler()));
    runner.start(metrics.watch('card_email', this.cards.createHandler('email')));
    runner.start(metrics.watch('card_sms', this.cards.createHandler('sms')));
  }

  stop(milliseconds: number): Promise<void> {
    return this.runner.stop(milliseconds);
  }
}
