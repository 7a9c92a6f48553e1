import { Injectable } from '@nestjs/common';
import { LOCKS } from '#platform/database/locks.js';
import { Followers } from '#platform/event-store/log/followers.service.js';
import { CARD_MESSAGES, CardLinkRequests } from './card-link-requests.service.js';

/** Follows the log for message requests, and enqueues their messages. */
@Injectable()
export class CardLinkFollower {
  constructor(
    private readonly followers: Followers,
    private readonly requests: CardLinkRequests,
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
        advance: (step, events) => this.requests.advance(step, events),
      },
      signal,
    );
  }
}
