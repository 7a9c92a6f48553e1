import { Injectable } from '@nestjs/common';
import { Config, type GoogleWallet } from '#kernel/config.js';
import { KnownErasures } from '#event-store/known-erasures.js';
import { PassContents } from '#passes/pass-contents.service.js';
import { PassImages } from '#passes/pass-images.service.js';
import type { PassContent } from '#passes/pass-content.js';
import type { PassOutcome } from '#passes/pass-sender.js';
import { Passes, type Pass } from '#passes/passes.service.js';
import type { GoogleAnswer } from './google-answer.js';
import {
  GoogleObjects,
  IN_DOUBT,
  type HeldClass,
  type HeldObject,
} from './google-objects.service.js';
import {
  googleHash,
  loyaltyClass,
  loyaltyObject,
  objectId,
  unlockedMessage,
  type GooglePlace,
} from './google-pass.js';
import { GoogleWalletClient } from './google-wallet.client.js';
import type { Publication } from './publication.js';

/** Shorter than how long others keep away from what is being sent. */
const DEADLINE_MS = 45_000;
/** So often what Google refuses is sent again: it may have been unable to fetch an image. */
const REFUSED_TIMES = 5;
const MOST_MESSAGES = 10;

/** Makes Google's classes and objects what the cards are now, and tells customers what they are to be told. */
@Injectable()
export class GooglePasses {
  constructor(
    private readonly objects: GoogleObjects,
    private readonly passes: Passes,
    private readonly contents: PassContents,
    private readonly erasures: KnownErasures,
    private readonly client: GoogleWalletClient,
    private readonly images: PassImages,
    private readonly config: Config,
  ) {}

  /** Sends nothing that Google has already. @param attempts this one included */
  async publishClass(cardId: number, attempts: number, cut: AbortSignal): Promise<Publication> {
    const { google } = this.config;
    if (google === null) return { kind: 'done' };
    const held = await this.objects.holdClass(cardId);
    if (held === undefined) return { kind: 'done' };
    if (held === 'busy') return { kind: 'busy' };
    try {
      return await this.sendClass(held, google, attempts, inTime(cut));
    } finally {
      await this.objects.freeClass(held);
    }
  }

  /** The same for a customer's object, and the notice that is due. The class is sent first if Google lacks it. */
  async publishObject(
    customerCardId: number,
    attempts: number,
    cut: AbortSignal,
  ): Promise<Publication> {
    const { google } = this.config;
    if (google === null) return { kind: 'done' };
    const held = await this.objects.holdObject(customerCardId);
    if (held === undefined) return { kind: 'done' };
    if (held === 'busy') return { kind: 'busy' };
    try {
      const outcome = await this.sendObject(held, google, attempts, inTime(cut));
      const error = outcome.kind === 'failed' || outcome.kind === 'refused' ? outcome.error : null;
      if (outcome.kind !== 'busy') {
        await this.passes.synced(customerCardId, held.accountId, 'google', error);
      }
      return outcome;
    } finally {
      await this.objects.freeObject(held);
    }
  }

  private async sendClass(
    held: HeldClass,
    google: GoogleWallet,
    attempts: number,
    signal: AbortSignal,
  ): Promise<PassOutcome> {
    const { cardId, sentHash } = held;
    const example = await this.objects.exampleOf(cardId);
    const content = example === undefined ? undefined : await this.contentOf(example);
    if (!content) return { kind: 'done' };
    const { logo } = await this.images.linksOf(content);
    const wanted = loyaltyClass(content, this.placeOf(google), logo);
    const hash = googleHash(wanted);
    if (hash === sentHash) return { kind: 'done' };
    if (sentHash !== null) await this.objects.classSent(held, IN_DOUBT);
    const answer = await this.client.put('loyaltyClass', wanted, sentHash !== null, signal);
    if (answer.kind !== 'ok') return outcomeOf(answer, attempts);
    await this.objects.classSent(held, hash);
    return { kind: 'done' };
  }

  private async sendObject(
    held: HeldObject,
    google: GoogleWallet,
    attempts: number,
    signal: AbortSignal,
  ): Promise<Publication> {
    // In this order: a notice of something that the content lacks would be lost.
    const readAt = performance.now();
    const pass = await this.passes.find(held.customerCardId);
    const content = await this.contentOf(held.customerCardId);
    if (!pass || !content) return { kind: 'done' };
    const { hasClass } = await this.objects.register(
      { id: held.customerCardId, accountId: held.accountId, cardId: content.cardId },
      held.toldTag,
    );
    if (!hasClass) {
      const first = await this.publishClass(content.cardId, attempts, signal);
      if (first.kind !== 'done') return first;
    }
    const isDue = pass.noticeTag > held.toldTag && content.state === 'valid';
    const read = { subjectId: content.customerId, readAt };
    const now = () => performance.now();
    const updated = await this.erasures.send(read, now, ({ erased, mayBeSent }) =>
      this.update(
        { held, pass, content, google, isDue },
        AbortSignal.any([signal, erased]),
        mayBeSent,
      ),
    );
    if (!updated) return { kind: 'failed', error: 'it is being sent again', retryInMs: 0 };
    if (updated.kind === 'refused' && updated.classIsMissing) {
      await this.objects.classLost(content.cardId);
      return { kind: 'failed', error: updated.error };
    }
    if (updated.kind !== 'ok') return outcomeOf(updated, attempts);
    if (isDue && pass.notice?.kind === 'unlocked') {
      const told = await this.tell({ pass, content, google }, pass.notice.rewardName, signal);
      if (told.kind !== 'ok') return outcomeOf(told, attempts);
    }
    if (pass.noticeTag > held.toldTag) await this.objects.told(held.customerCardId, pass.noticeTag);
    return { kind: 'done' };
  }

  /** Of the notices only those of a changed balance are part of the update itself. */
  private async update(
    {
      held,
      pass: { notice, noticeTag },
      content,
      google,
      isDue,
    }: { held: HeldObject; pass: Pass; content: PassContent; google: GoogleWallet; isDue: boolean },
    signal: AbortSignal,
    mayBeSent: () => boolean,
  ): Promise<GoogleAnswer> {
    const { customerCardId, sentHash } = held;
    const { strip } = await this.images.linksOf(content);
    const object = loyaltyObject(content, this.placeOf(google), strip.hero, new Date());
    const hash = googleHash(object);
    if (hash === sentHash) return { kind: 'ok', body: {} };
    const isLoud =
      isDue &&
      notice?.kind !== 'unlocked' &&
      (await this.objects.countNotice(customerCardId, 'update', noticeTag));
    if (sentHash !== null) await this.objects.objectSent(held, IN_DOUBT);
    const record = isLoud ? { ...object, notifyPreference: 'NOTIFY_ON_UPDATE' } : object;
    const answer = await this.client.put(
      'loyaltyObject',
      record,
      sentHash !== null,
      signal,
      mayBeSent,
    );
    if (answer.kind === 'ok') await this.objects.objectSent(held, hash);
    else if (isLoud) await this.objects.uncountNotice(customerCardId, 'update', noticeTag);
    return answer;
  }

  /**
   * A message that Google has already, because a process died after sending it, is not sent again. After a restored
   * backup another message may have had its id.
   */
  private async tell(
    { pass, content, google }: { pass: Pass; content: PassContent; google: GoogleWallet },
    rewardName: string,
    signal: AbortSignal,
  ): Promise<GoogleAnswer> {
    const { customerCardId, noticeTag } = pass;
    const id = objectId(content.uuid, this.placeOf(google));
    const found = await this.client.get('loyaltyObject', id, signal);
    if (found.kind !== 'ok') return found;
    const kept = messagesIn(found.body);
    const message = unlockedMessage(rewardName, noticeTag, content.locale);
    if (kept.some(({ id: keptId, body }) => keptId === message.id && body === message.body)) {
      return found;
    }
    if (kept.length >= MOST_MESSAGES) {
      const messages = kept.slice(1 - MOST_MESSAGES);
      const pruned = await this.client.patch('loyaltyObject', id, { messages }, signal);
      if (pruned.kind !== 'ok') return pruned;
    }
    const add = (messageType: 'TEXT' | 'TEXT_AND_NOTIFY') =>
      this.client.addMessage(id, { ...message, messageType }, signal);
    if (!(await this.objects.countNotice(customerCardId, 'message', noticeTag))) return add('TEXT');
    const answer = await add('TEXT_AND_NOTIFY');
    if (answer.kind === 'over_quota') return add('TEXT');
    if (answer.kind !== 'ok') {
      await this.objects.uncountNotice(customerCardId, 'message', noticeTag);
    }
    return answer;
  }

  private async contentOf(customerCardId: number): Promise<PassContent | undefined> {
    return (await this.contents.load([customerCardId])).get(customerCardId);
  }

  private placeOf({ issuerId, idSuffix }: GoogleWallet): GooglePlace {
    return { issuerId, idSuffix, publicUrl: this.config.publicUrl };
  }
}

function inTime(cut: AbortSignal): AbortSignal {
  return AbortSignal.any([cut, AbortSignal.timeout(DEADLINE_MS)]);
}

/** @param answer one that is not `ok` */
function outcomeOf(answer: GoogleAnswer, attempts: number): PassOutcome {
  switch (answer.kind) {
    case 'refused':
      return attempts < REFUSED_TIMES
        ? { kind: 'failed', error: answer.error }
        : { kind: 'refused', error: answer.error };
    case 'limited':
      return { kind: 'failed', error: answer.error, retryInMs: answer.retryInMs };
    case 'failed':
      return {
        kind: 'failed',
        error: answer.error,
        ...(answer.retryInMs !== undefined && { retryInMs: answer.retryInMs }),
      };
    default:
      // Inserted and taken away at the same time by others, and the like.
      return { kind: 'failed', error: `unexpected answer (${answer.kind})` };
  }
}

function messagesIn({ messages }: Record<string, unknown>): { id?: unknown; body?: unknown }[] {
  return Array.isArray(messages) ? (messages as { id?: unknown; body?: unknown }[]) : [];
}
