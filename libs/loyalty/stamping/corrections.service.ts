import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { Actor, RecordedEvent } from '#platform/kernel/aggregate.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { parsePublicEventId } from '#platform/kernel/public-id.js';
import { query } from '#platform/database/connection.js';
import { toRecorded } from '#platform/event-store/port/codec.js';
import {
  EventStore,
  type Claim,
  type StoredEvent,
} from '#platform/event-store/port/event-store.js';
import { ReadModels, toStreamName } from '#platform/event-store/read-models/read-models.js';
import { customerCard, findLocked } from './customer-card.js';
import type { CustomerCardEvent, UnlockedReward } from './customer-card.events.js';
import { CustomerCardsService } from './customer-cards.service.js';

/** Finds what a reversal needs of a customer card's history. */
@Injectable()
export class CorrectionsService {
  constructor(
    private readonly pool: Pool,
    private readonly events: EventStore,
    private readonly readModels: ReadModels,
    private readonly customerCards: CustomerCardsService,
  ) {}

  /**
   * Finds the event of the card with this public id, and what it has locked if it is a redemption. What is personal in
   * it stays sealed.
   * @throws NotFoundError
   */
  async getEvent(
    id: number,
    publicId: string,
  ): Promise<{ event: RecordedEvent<CustomerCardEvent>; locked: UnlockedReward[] }> {
    return this.toReversible(await this.getStored(id, publicId));
  }

  /** Decodes an event that is to be reversed, and finds what it has locked if it is a redemption. */
  async toReversible(
    stored: StoredEvent,
  ): Promise<{ event: RecordedEvent<CustomerCardEvent>; locked: UnlockedReward[] }> {
    const event = toRecorded<CustomerCardEvent>(customerCard, stored);
    if (event.type !== 'RewardRedeemed' || event.data.locked.length === 0) {
      return { event, locked: [] };
    }
    const { stream, revision } = stored;
    const before = await this.readModels.project(customerCard, stream, { to: revision - 1 });
    return { event, locked: before ? findLocked(before.state, event.data) : [] };
  }

  /** @throws NotFoundError when the path names no customer card, or no event of it */
  async assertEventExists(
    accountId: number,
    path: { customerId: number; id: number },
    publicId: string,
  ): Promise<void> {
    await this.customerCards.get(accountId, path);
    await this.getStored(path.id, publicId);
  }

  private async getStored(id: number, publicId: string): Promise<StoredEvent> {
    const eventId = parsePublicEventId(publicId);
    const stored =
      eventId && (await this.events.findEvent(toStreamName(customerCard, id), eventId));
    if (!stored) throw new NotFoundError('Event');
    return stored;
  }

  /** Tells whether an actor is this user, on a page or with any of their tokens. */
  async isUser({ type, id }: Actor, userId: number): Promise<boolean> {
    if (type !== 'token') return type === 'user' && id === userId;
    const rows = await query(this.pool, {
      name: 'corrections_find_token_of_user',
      text: 'select 1 from api_tokens where id = $1 and user_id = $2',
      values: [id, userId],
    });
    return rows.length > 0;
  }

  /**
   * Tells whether an event up to this revision holds the claim. One that is claimed later may still be released, where
   * a commit claims before it appends; the commit of a decision on this revision finds out.
   */
  async isClaimed(accountId: number, { kind, value }: Claim, upTo: number): Promise<boolean> {
    const rows = await query(this.pool, {
      name: 'corrections_find_claim',
      text: `select 1 from es.claims
             where account_id = $1 and kind = $2 and value = $3 and revision <= $4`,
      values: [accountId, kind, value, upTo],
    });
    return rows.length > 0;
  }
}
