import { Injectable, Logger } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import { getErrorMessage } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { isTransient } from '#database/connection.js';
import { CardMessageSending } from './card-message-sending.service.js';
import { MailQueue } from './mail-queue.service.js';
import type { MessageQueue } from './message-queue.js';

const CONCURRENCY = 4;
const POLL_INTERVAL_MS = 1_000;

/**
 * Sends queued e-mails and SMS. Each kind runs apart from the others and from the webhooks, so that a server that hangs
 * delays nothing else.
 */
@Injectable()
export class MessageDispatch {
  private readonly log = new Logger('messages');
  private readonly stopping = new AbortController();
  private readonly cut = new AbortController();
  private running: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly mails: MailQueue,
    private readonly cards: CardMessageSending,
    private readonly config: Config,
  ) {}

  /** Starts all queues. Card links are claimed even when nothing can send them: they are then held in the outbox. */
  start(): void {
    const { signal } = this.stopping;
    this.running = Promise.all([
      ...(this.config.mail === null ? [] : [this.run(this.mails, signal)]),
      this.run(this.cards.createQueue('email'), signal),
      this.run(this.cards.createQueue('sms'), signal),
    ]);
  }

  /** Stops sending. Attempts that take longer than the time allowed are aborted, and made again later. */
  async stop(milliseconds: number): Promise<void> {
    this.stopping.abort();
    const timeout = setTimeout(() => this.cut.abort(), milliseconds);
    await this.running;
    clearTimeout(timeout);
  }

  private async run<M>(queue: MessageQueue<M>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const messages = await queue.claim(CONCURRENCY);
        const sending = messages.map((message) => queue.send(message, this.cut.signal));
        // Wait for all of them before claiming more, even when one fails.
        for (const sent of await Promise.allSettled(sending)) {
          if (sent.status === 'rejected') throw sent.reason;
        }
        if (messages.length === CONCURRENCY) continue;
      } catch (error) {
        const level = isTransient(error) ? 'warn' : 'error';
        this.log[level](`${queue.name} cannot be processed: ${getErrorMessage(error)}`);
      }
      await pause(POLL_INTERVAL_MS, signal);
    }
  }
}
