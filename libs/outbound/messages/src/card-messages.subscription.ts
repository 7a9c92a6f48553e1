import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { LeaderLock } from '#database/leader-lock.js';
import { readCheckpoint } from '#event-store/port/checkpoint.js';
import { EventStore, type Position, type StoredEvent } from '#event-store/port/event-store.js';
import { EventTypes } from '#event-store/port/event-types.js';
import { followLog } from '#event-store/log/follow-log.js';
import { CARD_MESSAGES, CardMessages } from './card-messages.service.js';

const LEADERSHIP = { name: CARD_MESSAGES, lock: 727_007 };
const BATCH = 500;
const GATHER_MS = 500;

/** Follows the log for message requests, and enqueues their messages. One process does this at a time. */
@Injectable()
export class CardMessagesFollower {
  private readonly log = new Logger(LEADERSHIP.name);

  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly types: EventTypes,
    private readonly messages: CardMessages,
    private readonly lock: LeaderLock,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    const follower = {
      batch: BATCH,
      gatherMs: GATHER_MS,
      readPosition: () => readCheckpoint(this.pool, CARD_MESSAGES),
      advance: async (from: Position, events: StoredEvent[], to: Position) => {
        this.types.assertKnown(events, 'no card links are sent');
        await this.messages.advance(from, to, events);
      },
    };
    await this.lock.lead(LEADERSHIP, signal, (leading) =>
      followLog(this.eventStore, follower, this.log, leading),
    );
  }
}
