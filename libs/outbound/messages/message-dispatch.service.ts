import { Injectable, Logger } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import { JobRunner } from '#platform/database/job-runner.js';
import { QueueMetrics } from '#platform/database/queue-metrics.js';
import { CardLinks } from './card-links.service.js';
import { MailOutbox } from './mail-outbox.service.js';
import { MessageSending, type MessageKind } from './message-sending.service.js';

/** Sends queued messages. */
@Injectable()
export class MessageDispatch {
  private readonly runner = new JobRunner(new Logger('messages'));

  constructor(
    private readonly sending: MessageSending,
    private readonly mails: MailOutbox,
    private readonly links: CardLinks,
    private readonly config: Config,
    private readonly metrics: QueueMetrics,
  ) {}

  /**
   * Starts the queues of e-mails and card links, which are claimed even when nothing can send them: they are then held in
   * the outbox.
   */
  start(): void {
    if (this.config.mail !== null) this.startKind(this.mails);
    this.startKind(this.links);
  }

  /** Starts the queues of a kind, each apart from the others. */
  startKind(kind: MessageKind): void {
    for (const { label, handler } of this.sending.createHandlers(kind)) {
      this.runner.start(this.metrics.watch(label, handler));
    }
  }

  stop(milliseconds: number): Promise<void> {
    return this.runner.stop(milliseconds);
  }
}
