import { Injectable } from '@nestjs/common';
import { GoogleObjects } from './google-objects.service.js';
import type { GoogleResponse } from './google-response.js';
import { GoogleWalletClient } from './google-wallet.client.js';

/** Google keeps ten messages of an object. */
const MAX_MESSAGES = 10;

/** A message of an object. */
export type ObjectMessage = { id: string; header: string; body: string };

/** @property isSilent whether it came without a notification */
export type AddedMessage = { response: GoogleResponse; isSilent: boolean };

/** Adds messages to objects in Google Wallet: with a notification, as far as the quota allows. */
@Injectable()
export class GoogleObjectMessages {
  constructor(
    private readonly objects: GoogleObjects,
    private readonly client: GoogleWalletClient,
  ) {}

  /**
   * Adds a message, unless the object has it because a process died after sending it. The body is compared too: after a
   * restored backup, another message may have the same id.
   * @param tag that of the notification, by which it is counted for the quota
   */
  async add(
    { customerCardId, tag, objectId }: { customerCardId: number; tag: number; objectId: string },
    message: ObjectMessage,
    signal: AbortSignal,
  ): Promise<AddedMessage> {
    const existing = await this.client.get('loyaltyObject', objectId, signal);
    if (existing.kind !== 'ok') return { response: existing, isSilent: false };
    const messages = parseMessages(existing.body);
    if (messages.some(({ id, body }) => id === message.id && body === message.body)) {
      return { response: existing, isSilent: false };
    }
    if (messages.length >= MAX_MESSAGES) {
      const change = { messages: messages.slice(1 - MAX_MESSAGES) };
      const response = await this.client.patch('loyaltyObject', objectId, change, signal);
      if (response.kind !== 'ok') return { response, isSilent: false };
    }
    const addAs = (messageType: 'TEXT' | 'TEXT_AND_NOTIFY') =>
      this.client.addMessage(objectId, { ...message, messageType }, signal);
    if (await this.objects.countNotification(customerCardId, 'message', tag)) {
      const response = await addAs('TEXT_AND_NOTIFY');
      if (response.kind !== 'over_quota') {
        if (response.kind !== 'ok') {
          await this.objects.uncountNotification(customerCardId, 'message', tag);
        }
        return { response, isSilent: false };
      }
    }
    return { response: await addAs('TEXT'), isSilent: true };
  }
}

function parseMessages({ messages }: Record<string, unknown>): { id?: unknown; body?: unknown }[] {
  return Array.isArray(messages) ? (messages as { id?: unknown; body?: unknown }[]) : [];
}
