import { Injectable, Logger } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import { JobRunner } from '#database/job-runner.js';
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
  ) {}

  /** Starts all queues. Card links are claimed even when nothing can send them: they are then held in the outbox. */
  start(): void {
    if (this.config.mail !== null) this.runner.start(this.mails.createHandler());
    this.runner.start(this.cards.createHandler('email'));
    this.runner.start(this.cards.createHandler('sms'));
  }

  stop(milliseconds: number): Promise<void> {
    return this.runner.stop(milliseconds);
  }
}
