import { CommandBus } from '@nestjs/cqrs';
import { Pool } from 'pg';
import { Registry } from 'prom-client';
import type { Config } from '#configuration/config.js';
import { readPosition } from '#platform/event-store/port/subscription-position.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { CapOverrides } from '#platform/event-store/commands/cap-overrides.service.js';
import { KnownErasures } from '#platform/event-store/personal-keys/known-erasures.js';
import { Followers } from '#platform/event-store/log/followers.service.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import { WindowCounts } from '#platform/database/window-counts.js';
import type { JobHandler } from '#platform/database/job-runner.js';
import { QueueMetrics } from '#platform/database/queue-metrics.js';
import { Maintenance } from '#platform/database/maintenance.service.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { CardImages } from '#outbound/card-images/card-images.service.js';
import { CardMessageContents } from '#outbound/messages/card-message-contents.service.js';
import { CardMessagePictures } from '#outbound/messages/card-message-pictures.service.js';
import { CARD_MESSAGES, CardLinkRequests } from '#outbound/messages/card-link-requests.service.js';
import { CardLinks } from '#outbound/messages/card-links.service.js';
import { CardLinkFollower } from '#outbound/messages/card-links.subscription.js';
import { EmailBounces } from '#outbound/messages/email-bounces.service.js';
import { MailOutbox } from '#outbound/messages/mail-outbox.service.js';
import { MessageDispatch } from '#outbound/messages/message-dispatch.service.js';
import { MessageLimits } from '#outbound/messages/message-limits.service.js';
import { MessageMetrics } from '#outbound/messages/message-metrics.service.js';
import { MessageSending } from '#outbound/messages/message-sending.service.js';
import {
  OutgoingMessages,
  type OutgoingMessage,
} from '#outbound/messages/outgoing-messages.service.js';
import { SmsClient } from '#outbound/messages/sms.client.js';
import { SmtpClient } from '#outbound/messages/smtp.client.js';
import { CARD_LINKS } from '../database/card-links.js';
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
    const sending = new MessageSending(
      new OutgoingMessages(this.pool, session),
      new MessageLimits(this.pool, get(WindowCounts), get(CapOverrides), config),
      get(KnownErasures),
      new EmailBounces(get(CommandBus)),
      new SmtpClient(config),
      new SmsClient(config),
      new MessageMetrics(this.pool, new Registry()),
      get(Maintenance),
    );
    const contents = new CardMessageContents(this.pool, get(ReadModels), config);
    const links = new CardLinks(
      contents,
      new CardMessagePictures(get(CardImages)),
      get(MasterKeys),
      config,
    );
    const outbox = new MailOutbox(get(MasterKeys), get(WindowCounts), config);
    startSession(service);
    this.dispatch = new MessageDispatch(sending, outbox, links, config, get(QueueMetrics));
    const follower = new CardLinkFollower(get(Followers), new CardLinkRequests(this.pool, config));
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
      () => this.pool.query(`select from ${CARD_LINKS} where state = 'queued'`),
      ({ rowCount }) => rowCount === 0,
    );
  }
}

/** Creates what sends e-mails of the service in a dispatcher. */
export function createMailHandler(
  pool: Pool,
  session: ProcessSession,
  outbox: MailOutbox,
  config: Config,
): JobHandler<OutgoingMessage> {
  const unused = null as never;
  const sending = new MessageSending(
    new OutgoingMessages(pool, session),
    unused,
    unused,
    unused,
    new SmtpClient(config),
    unused,
    new MessageMetrics(pool, new Registry()),
    unused,
  );
  const [mails] = sending.createHandlers(outbox);
  if (!mails) throw new Error('there is no queue of e-mails');
  return mails.handler;
}
