import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { LeaderLock, type Leadership } from '#platform/database/leader-lock.js';
import type { Step } from '../port/subscription-position.js';
import { EventStore, type StoredEvent } from '../port/event-store.js';
import { EventTypes } from '../port/event-types.js';
import { followAccounts, type AccountFollower } from './follow-accounts.js';
import { followLog, type LogFollower } from './follow-log.js';

/** @property effect what does not happen when this version cannot read an event */
type CheckedFollower = AccountFollower & { effect: string };

/**
 * Work that follows the log: all events together, each of which blocks those after it, or those of each account by
 * themselves.
 * @property runBeside what its leader does besides
 */
type Follower = Leadership & { runBeside?: (leading: AbortSignal) => Promise<unknown> } & (
    | (LogFollower & { subscription?: undefined })
    | CheckedFollower
  );

/**
 * Runs what follows the log. One process at a time does each work. Its lock only saves the others the work: what makes it
 * safe is that each step compares what it moves with what was read.
 */
@Injectable()
export class Followers {
  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly types: EventTypes,
    private readonly lock: LeaderLock,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(follower: Follower, signal: AbortSignal): Promise<void> {
    const log = new Logger(follower.name);
    await this.lock.lead(follower, signal, async (leading) => {
      const steppedDown = new AbortController();
      const followSignal = AbortSignal.any([leading, steppedDown.signal]);
      const follow =
        follower.subscription !== undefined
          ? followAccounts(this.eventStore, this.pool, this.prepare(follower), log, followSignal)
          : followLog(this.eventStore, follower, log, followSignal);
      const work = follow.finally(() => steppedDown.abort());
      await Promise.all([work, follower.runBeside?.(followSignal)]);
    });
  }

  /** Makes a follower get events only when this version can read them, and read models show them. */
  private prepare(follower: CheckedFollower): AccountFollower {
    const advance = async (step: Step, events: StoredEvent[]) => {
      this.types.assertKnown(events, follower.effect);
      await this.eventStore.waitUntilProjected(events);
      await follower.advance(step, events);
    };
    return { ...follower, advance };
  }
}
