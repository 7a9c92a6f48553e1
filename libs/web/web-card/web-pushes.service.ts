import { Injectable } from '@nestjs/common';
import { randomBytes } from 'node:crypto';
import { Config } from '#configuration/config.js';
import { getNow, getNowMs } from '#platform/kernel/clock.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { OutdatedError } from '#outbound/sending/http-response.js';
import { getError, isSuccess, type Outcome } from '#outbound/sending/outcome.js';
import { KnownErasures } from '#platform/event-store/personal-keys/known-erasures.js';
import type { PassContent } from '#outbound/passes/pass-content.js';
import { PassContents } from '#outbound/passes/pass-contents.service.js';
import { PassMessages, type TaggedMessage } from '#outbound/passes/pass-messages.service.js';
import type { Queryable } from '#platform/database/connection.js';
import type { JobOutcome } from '#platform/database/job-queue.js';
import { PassSender, type PassUpdate, type UpdateRequest } from '#outbound/passes/pass-sender.js';
import { Passes, type Pass } from '#outbound/passes/passes.service.js';
import { createPushNotification, PUSH_NOTIFICATION_TYPE } from './push-notification.js';
import { VapidKeys } from './vapid-keys.service.js';
import { WebPushClient } from './web-push.client.js';
import { createAuthorization, encryptMessage, generateKeyPair } from './web-push-message.js';
import type { WebPushSubscription } from './web-push-subscription.js';
import { WebPushSubscriptions, type StoredSubscription } from './web-push-subscriptions.service.js';

/** The age after which a notification is dropped: nobody needs to hear of a stamp of yesterday. */
const MAX_AGE_SECONDS = 24 * 60 * 60;
/** Lets a phone that was off get only the last of several. */
const ONLY_THE_LAST = { topic: 'card' };
const MAX_RETRY_SECONDS = 60 * 60;

/** The outcome of a push. gone: the browser was forgotten, for an error or since it has ended its subscription. */
type PushOutcome = JobOutcome | { kind: 'gone'; error: string | null };

function toJobOutcome(outcome: PushOutcome): JobOutcome {
  if (outcome.kind !== 'gone') return outcome;
  return outcome.error === null ? { kind: 'done' } : { kind: 'refused', error: outcome.error };
}

/** Sends notifications to browsers: each notification once, and nothing for silent changes. */
@Injectable()
export class WebPushes extends PassSender {
  readonly channel = 'web';
  readonly enabled = true;
  readonly concurrency = 20;

  constructor(
    private readonly subscriptions: WebPushSubscriptions,
    private readonly passes: Passes,
    private readonly contents: PassContents,
    private readonly messages: PassMessages,
    private readonly erasures: KnownErasures,
    private readonly client: WebPushClient,
    private readonly vapid: VapidKeys,
    private readonly config: Config,
  ) {
    super();
  }

  findTargets(customerCardIds: number[], by: Queryable): Promise<UpdateRequest[]> {
    return this.subscriptions.findTargets(customerCardIds, by);
  }

  async send(
    { target }: PassUpdate,
    _signal: AbortSignal,
    isLeased: () => boolean,
  ): Promise<JobOutcome> {
    const readAt = performance.now();
    const stored = await this.subscriptions.find(Number(target));
    if (!stored) return { kind: 'done' };
    const browser = await this.subscriptions.decrypt(stored);
    const pass = await this.passes.find(stored.customerCardId);
    const content = (await this.contents.load([stored.customerCardId])).get(stored.customerCardId);
    if (!stored.hasHolder || !browser || !pass || !content) {
      await this.subscriptions.forget(stored);
      return { kind: 'done' };
    }
    const mayBeSent = () =>
      isLeased() && this.erasures.isCurrent(content.customerId, readAt, performance.now());
    const message = await this.messages.find(stored.customerCardId, 'browser');
    const due = { content, mayBeSent };
    let messaged: PushOutcome = { kind: 'done' };
    if (message && message.tag > stored.messagedTag) {
      messaged = await this.sendMessage(stored, browser, { ...due, message });
      if (messaged.kind === 'failed' || messaged.kind === 'unsent') return messaged;
    }
    // What the service refuses of the message says nothing about the notification of the stamp.
    const notified =
      messaged.kind === 'gone'
        ? messaged
        : await this.sendNotification(stored, browser, { ...due, pass });
    return toJobOutcome(notified.kind === 'done' ? messaged : notified);
  }

  /** Sends the notification of the last change. One that is too old is dropped. */
  private async sendNotification(
    stored: StoredSubscription,
    browser: WebPushSubscription,
    {
      pass: { notification, notificationTag, changedAt },
      content,
      mayBeSent,
    }: { pass: Pass; content: PassContent; mayBeSent: () => boolean },
  ): Promise<PushOutcome> {
    if (notification === null || notificationTag <= stored.notifiedTag) return { kind: 'done' };
    if (getNowMs() - changedAt.getTime() > MAX_AGE_SECONDS * 1000) {
      await this.subscriptions.markNotified(stored, notificationTag);
      return { kind: 'done' };
    }
    const text = JSON.stringify(
      createPushNotification(content, notification, this.config.publicUrl),
    );
    const startedAt = getNow();
    const outcome = await this.post(browser, text, ONLY_THE_LAST, mayBeSent);
    return this.recordOutcome(stored, notificationTag, outcome, startedAt);
  }

  /** Sends a message of the store. A message that is too old is dropped. */
  private async sendMessage(
    stored: StoredSubscription,
    browser: WebPushSubscription,
    {
      message: { title, text, tag, at },
      content,
      mayBeSent,
    }: { message: TaggedMessage; content: PassContent; mayBeSent: () => boolean },
  ): Promise<PushOutcome> {
    let result: PushOutcome = { kind: 'done' };
    if (getNowMs() - Date.parse(at) <= MAX_AGE_SECONDS * 1000) {
      const notification = { text: `${title}\n${text}`, message: tag };
      const payload = JSON.stringify(
        createPushNotification(content, notification, this.config.publicUrl),
      );
      const startedAt = getNow();
      const outcome = await this.post(browser, payload, {}, mayBeSent);
      result = await this.recordOutcome(stored, stored.notifiedTag, outcome, startedAt);
    }
    if (result.kind === 'done' || result.kind === 'refused')
      await this.subscriptions.markMessaged(stored, tag);
    return result;
  }

  private async post(
    { endpoint, p256dh, auth }: WebPushSubscription,
    text: string,
    replacing: { topic?: string },
    mayBeSent: () => boolean,
  ): Promise<Outcome | { kind: 'unsent' }> {
    const keys = {
      p256dh: Buffer.from(p256dh, 'base64url'),
      auth: Buffer.from(auth, 'base64url'),
    };
    const body = encryptMessage(Buffer.from(text), keys, generateKeyPair(), randomBytes(16));
    const headers = {
      authorization: await createAuthorization(
        endpoint,
        this.vapid.pair,
        this.config.publicUrl,
        getNow(),
      ),
      'content-type': PUSH_NOTIFICATION_TYPE,
      'content-encoding': 'aes128gcm',
      ttl: String(MAX_AGE_SECONDS),
      urgency: 'normal',
      ...replacing,
    };
    try {
      return await this.client.post(endpoint, headers, body, mayBeSent);
    } catch (error) {
      if (error instanceof OutdatedError) return { kind: 'unsent' };
      throw error;
    }
  }

  private async recordOutcome(
    stored: StoredSubscription,
    notificationTag: number,
    outcome: Outcome | { kind: 'unsent' },
    startedAt: Date,
  ): Promise<PushOutcome> {
    if (outcome.kind === 'unsent') return outcome;
    const { customerCardId, accountId } = stored;
    const status = outcome.kind === 'responded' ? outcome.status : 0;
    if (isSuccess(outcome)) {
      await this.subscriptions.markNotified(stored, notificationTag);
      await this.passes.markSynced(customerCardId, accountId, 'web', null, startedAt);
      return { kind: 'done' };
    }
    if (status === 404 || status === 410 || outcome.kind === 'blocked') {
      await this.subscriptions.forget(stored);
      return {
        kind: 'gone',
        error: outcome.kind === 'blocked' ? 'its address is not a public one' : null,
      };
    }
    const error = getError(outcome) ?? getErrorMessage(outcome);
    await this.passes.markSynced(customerCardId, accountId, 'web', error);
    if (status >= 400 && status < 500 && status !== 408 && status !== 429) {
      await this.subscriptions.markNotified(stored, notificationTag);
      return { kind: 'refused', error };
    }
    const retryAfter = outcome.kind === 'responded' ? Number(outcome.retryAfter ?? NaN) : NaN;
    return Number.isFinite(retryAfter)
      ? { kind: 'failed', error, retryInMs: Math.min(retryAfter, MAX_RETRY_SECONDS) * 1000 }
      : { kind: 'failed', error };
  }
}
