import { CommandBus } from '@nestjs/cqrs';
import { Pool } from 'pg';
import { Registry } from 'prom-client';
import { readPosition } from '#platform/event-store/port/subscription-position.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { CapOverrides } from '#platform/event-store/commands/cap-overrides.service.js';
import { KnownErasures } from '#platform/event-store/personal-keys/known-erasures.js';
import { Followers } from '#platform/event-store/log/followers.service.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import { WindowCounts } from '#platform/database/window-counts.js';
import { QueueMetrics } from '#platform/database/queue-metrics.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { CardImages } from '#outbound/card-images/card-images.service.js';
import { CardMessageContents } from '#outbound/messages/card-message-contents.service.js';
import { CardMessagePictures } from '#outbound/messages/card-message-pictures.service.js';
import { CardMessageSending } from '#outbound/messages/card-message-sending.service.js';
import { CARD_MESSAGES, CardMessages } from '#outbound/messages/card-messages.service.js';
import { CardMessagesFollower } from '#outbound/messages/card-messages.subscription.js';
import { EmailBounces } from '#outbound/messages/email-bounces.service.js';
import { MailOutbox } from '#outbound/messages/mail-outbox.service.js';
import { MailQueue } from '#outbound/messages/mail-queue.service.js';
import { MessageDispatch } from '#outbound/messages/message-dispatch.service.js';
import { MessageMetrics } from '#outbound/messages/message-metrics.service.js';
import { SmsClient } from '#outbound/messages/sms.client.js';
import { SmtpClient } from '#outbound/messages/smtp.client.js';
import { testConfig } from '../database/database.js';
import { eventually } from '../jest/eventually.js';
import { startSession, type LocalService } from './service.js';
import { waitUntilReadable } from '../database/event-store.js';

/** Runs a dispatcher's messages with the providers of a running api. */
export class MessageFollower {
  private readonly pool: Pool;
  private readonly store: EventStore;
  private readonly dispatch: MessageDispatch;
  private readonly stopping = new AbortController();
  private readonly running: Promise<void>;
  private readonly started: Promise<void>;

  constructor(
    private readonly service: LocalService,
    settings: NodeJS.ProcessEnv = {},
  ) {
    const get = <T>(type: abstract new (...args: never[]) => T): T =>
      service.app.get<T>(type, { strict: false });
    const config = testConfig(service.environment['DATABASE_URL'] ?? service.database.url, {
      ...service.environment,
      ...settings,
    });
    this.pool = get(Pool);
    this.store = get(EventStore);
    const session = get(ProcessSession);
    const messages = new CardMessages(this.pool, session, get(WindowCounts));
    const metrics = new MessageMetrics(this.pool, new Registry());
    const smtp = new SmtpClient(config);
    const contents = new CardMessageContents(this.pool, get(ReadModels), config);
    const cards = new CardMessageSending(
      messages,
      contents,
      new CardMessagePictures(get(CardImages)),
      get(KnownErasures),
      new EmailBounces(get(CommandBus)),
      smtp,
      new SmsClient(config),
      metrics,
      get(CapOverrides),
      config,
    );
    const outbox = new MailOutbox(this.pool, session, get(MasterKeys), get(WindowCounts), config);
    startSession(service);
    const mails = new MailQueue(outbox, smtp, metrics);
    this.dispatch = new MessageDispatch(mails, cards, config, get(QueueMetrics));
    const follower = new CardMessagesFollower(get(Followers), messages);
    this.running = follower.run(this.stopping.signal);
    // Messages that exist already are then sent in the first round.
    this.started = this.waitUntilEnqueued().then(() => this.dispatch.start());
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await Promise.all([this.running, this.started]);
    await this.dispatch.stop(0);
  }

  /** Waits until every event so far has been read, and its messages are enqueued. */
  async waitUntilEnqueued(): Promise<void> {
    await waitUntilReadable(this.service.database);
    await eventually(
      async () => this.store.readAll(await readPosition(this.pool, CARD_MESSAGES), 1),
      (left) => left.length === 0 || this.stopping.signal.aborted,
    );
  }

  /** Waits until no message is queued, retries included. */
  async waitUntilSettled(): Promise<void> {
    await this.waitUntilEnqueued();
    await eventually(
      () => this.pool.query(`select from card_messages where state = 'queued'`),
      ({ rowCount }) => rowCount === 0,
    );
  }
}
