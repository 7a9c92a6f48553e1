import { Injectable } from '@nestjs/common';
import { getNow } from '#platform/kernel/clock.js';
import { Config, type GoogleWallet } from '#configuration/config.js';
import { KnownErasures } from '#platform/event-store/personal-keys/known-erasures.js';
import { PassContents } from '#outbound/passes/pass-contents.service.js';
import { PassImages } from '#outbound/passes/pass-images.service.js';
import type { PassContent } from '#outbound/passes/pass-content.js';
import type { JobOutcome } from '#platform/database/job-queue.js';
import { Passes, type Pass } from '#outbound/passes/passes.service.js';
import { GoogleMessages } from './google-messages.service.js';
import { GoogleObjectMessages } from './google-object-messages.service.js';
import type { GoogleResponse } from './google-response.js';
import {
  GoogleObjects,
  UNCERTAIN_HASH,
  type LeasedClass,
  type LeasedObject,
} from './google-objects.service.js';
import {
  hashGoogleRecord,
  renderLoyaltyClass,
  renderLoyaltyObject,
  toObjectId,
  renderNotificationMessage,
  type GoogleInstallation,
  type NotificationMessage,
} from './google-pass.js';
import { GoogleWalletClient } from './google-wallet.client.js';
import { toFailure, toUnsentIfCut, type Publication } from './publication.js';

/** Shorter than the lease of what is being sent. */
const DEADLINE_MS = 45_000;
/** Google may refuse a pass because it could not fetch an image, so it is tried this many times. */
const MAX_ATTEMPTS = 5;

/** Brings Google's classes and objects up to date with the cards, and sends the notifications that are due. */
@Injectable()
export class GooglePasses {
  constructor(
    private readonly objects: GoogleObjects,
    private readonly objectMessages: GoogleObjectMessages,
    private readonly messages: GoogleMessages,
    private readonly passes: Passes,
    private readonly contents: PassContents,
    private readonly erasures: KnownErasures,
    private readonly client: GoogleWalletClient,
    private readonly images: PassImages,
    private readonly config: Config,
  ) {}

  /** Sends a class unless Google has it already. @param attempts including this one */
  async publishClass(cardId: number, attempts: number, signal: AbortSignal): Promise<Publication> {
    const { google } = this.config;
    if (google === null) return { kind: 'done' };
    const lease = await this.objects.leaseClass(cardId);
    if (lease === undefined) return { kind: 'done' };
    if (lease === 'busy') return { kind: 'busy' };
    try {
      const sent = await this.sendClass(lease, google, attempts, withDeadline(signal));
      return toUnsentIfCut(sent, signal);
    } finally {
      await this.objects.releaseClass(lease);
    }
  }

  /** Sends a customer's object, and what is due: its notification, the message of the store. Sends a missing class first. */
  async publishObject(
    customerCardId: number,
    attempts: number,
    signal: AbortSignal,
  ): Promise<Publication> {
    const { google } = this.config;
    if (google === null) return { kind: 'done' };
    const lease = await this.objects.leaseObject(customerCardId);
    if (lease === undefined) return { kind: 'done' };
    if (lease === 'busy') return { kind: 'busy' };
    try {
      const readAt = getNow();
      const inTime = withDeadline(signal);
      const published = await this.sendObject(lease, google, attempts, inTime);
      const outcome = toUnsentIfCut(
        await this.sendMessage(customerCardId, published, attempts, inTime),
        signal,
      );
      const error = outcome.kind === 'failed' || outcome.kind === 'refused' ? outcome.error : null;
      if (outcome.kind !== 'busy' && outcome.kind !== 'unsent') {
        await this.passes.markSynced(customerCardId, lease.accountId, 'google', error, readAt);
      }
      return outcome;
    } finally {
      await this.objects.releaseObject(lease);
    }
  }

  /**
   * Sends the message of the store, also after Google has refused the object or its notification, which has nothing to do with
   * it.
   * @returns the outcome of both
   */
  private async sendMessage(
    customerCardId: number,
    published: Publication,
    attempts: number,
    signal: AbortSignal,
  ): Promise<Publication> {
    if (published.kind !== 'done' && published.kind !== 'refused') return published;
    const sent = await this.messages.send(customerCardId, signal);
    if (published.kind === 'done') return sent;
    return sent.kind === 'failed' && attempts < MAX_ATTEMPTS ? sent : published;
  }

  private async sendClass(
    lease: LeasedClass,
    google: GoogleWallet,
    attempts: number,
    signal: AbortSignal,
  ): Promise<JobOutcome> {
    const { cardId, sentHash } = lease;
    const customerCardId = await this.objects.findCustomerCard(cardId);
    const content =
      customerCardId === undefined ? undefined : await this.findContent(customerCardId);
    if (!content) return { kind: 'done' };
    const { logo } = await this.images.createLinks(content);
    const loyaltyClass = renderLoyaltyClass(content, this.getInstallation(google), logo);
    const hash = hashGoogleRecord(loyaltyClass);
    if (hash === sentHash) return { kind: 'done' };
    if (sentHash !== null) await this.objects.recordSentClass(lease, UNCERTAIN_HASH);
    const response = await this.client.put('loyaltyClass', loyaltyClass, sentHash !== null, signal);
    if (response.kind !== 'ok') return toFailure(response, { canRetry: attempts < MAX_ATTEMPTS });
    await this.objects.recordSentClass(lease, hash);
    return { kind: 'done' };
  }

  private async sendObject(
    lease: LeasedObject,
    google: GoogleWallet,
    attempts: number,
    signal: AbortSignal,
  ): Promise<Publication> {
    // In this order: a notification about something that the content does not have yet would be lost.
    const readAt = performance.now();
    const pass = await this.passes.find(lease.customerCardId);
    const content = await this.findContent(lease.customerCardId);
    if (!pass || !content) return { kind: 'done' };
    const { hasClass } = await this.objects.register(
      { id: lease.customerCardId, accountId: lease.accountId, cardId: content.cardId },
      lease.notifiedTag,
    );
    if (!hasClass) {
      const classOutcome = await this.publishClass(content.cardId, attempts, signal);
      if (classOutcome.kind !== 'done') return classOutcome;
    }
    const isDue = pass.notificationTag > lease.notifiedTag && content.state === 'valid';
    const personalRead = { subjectId: content.customerId, readAt };
    const now = () => performance.now();
    const response = await this.erasures.send(personalRead, now, ({ erased, mayBeSent }) =>
      this.sendUpdate(
        { lease, pass, content, google, isDue },
        AbortSignal.any([signal, erased]),
        mayBeSent,
      ),
    );
    // An erasure aborts the request, after which everything is read anew.
    const isOutdated = !this.erasures.isCurrent(content.customerId, readAt, performance.now());
    if (!response || (response.kind === 'failed' && isOutdated)) return { kind: 'unsent' };
    if (response.kind === 'refused' && response.classIsMissing) {
      await this.objects.recordMissingClass(content.cardId);
      return { kind: 'failed', error: response.error };
    }
    if (response.kind !== 'ok') return toFailure(response, { canRetry: attempts < MAX_ATTEMPTS });
    const message = isDue ? renderMessage(pass, content) : undefined;
    if (message) {
      const objectId = toObjectId(content.uuid, this.getInstallation(google));
      const { customerCardId, notificationTag: tag } = pass;
      const target = { customerCardId, tag, objectId };
      const { response: messageResponse } = await this.objectMessages.add(target, message, signal);
      if (messageResponse.kind !== 'ok')
        return toFailure(messageResponse, { canRetry: attempts < MAX_ATTEMPTS });
    }
    if (pass.notificationTag > lease.notifiedTag)
      await this.objects.recordNotified(lease.customerCardId, pass.notificationTag);
    return { kind: 'done' };
  }

  /** Sends an object. A notification of a changed balance is part of it; other notifications are sent separately. */
  private async sendUpdate(
    {
      lease,
      pass,
      content,
      google,
      isDue,
    }: {
      lease: LeasedObject;
      pass: Pass;
      content: PassContent;
      google: GoogleWallet;
      isDue: boolean;
    },
    signal: AbortSignal,
    mayBeSent: () => boolean,
  ): Promise<GoogleResponse> {
    const { customerCardId, sentHash } = lease;
    const { notificationTag } = pass;
    const { strip } = await this.images.createLinks(content);
    const object = renderLoyaltyObject(content, this.getInstallation(google), strip.hero, getNow());
    const hash = hashGoogleRecord(object);
    if (hash === sentHash) return { kind: 'ok', body: {} };
    const isNotifying =
      isDue &&
      renderMessage(pass, content) === undefined &&
      (await this.objects.countNotification(customerCardId, 'update', notificationTag));
    if (sentHash !== null) await this.objects.recordSentObject(lease, UNCERTAIN_HASH);
    const record = isNotifying ? { ...object, notifyPreference: 'NOTIFY_ON_UPDATE' } : object;
    const response = await this.client.put(
      'loyaltyObject',
      record,
      sentHash !== null,
      signal,
      mayBeSent,
    );
    if (response.kind === 'ok') await this.objects.recordSentObject(lease, hash);
    else if (isNotifying)
      await this.objects.uncountNotification(customerCardId, 'update', notificationTag);
    return response;
  }

  private async findContent(customerCardId: number): Promise<PassContent | undefined> {
    return (await this.contents.load([customerCardId])).get(customerCardId);
  }

  private getInstallation({ issuerId, idSuffix }: GoogleWallet): GoogleInstallation {
    return { issuerId, idSuffix, publicUrl: this.config.publicUrl };
  }
}

function renderMessage(
  { notification, notificationTag, changedAt }: Pass,
  content: PassContent,
): NotificationMessage | undefined {
  return notification === null
    ? undefined
    : renderNotificationMessage(notification, notificationTag, content, changedAt);
}

function withDeadline(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
}
