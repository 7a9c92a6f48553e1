import { Injectable } from '@nestjs/common';
import { LOCKS } from '#platform/database/locks.js';
import { Followers } from '#platform/event-store/log/followers.service.js';
import { CARD_MESSAGES, CardMessages } from './card-messages.service.js';

/** Follows the log for message requests, and enqueues their messages. */
@Injectable()
export class CardMessagesFollower {
  constructor(
    private readonly followers: Followers,
    private readonly messages: CardMessages,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    await this.followers.run(
      {
        name: CARD_MESSAGES,
        lock: LOCKS.messages,
        subscription: CARD_MESSAGES,
        batch: 500,
        gatherMs: 500,
        effect: 'no card links are sent',
        advance: (step, events) => this.messages.advance(step, events),
      },
      signal,
    );
  }
}
