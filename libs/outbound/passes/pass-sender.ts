import type { Queryable } from '#platform/database/connection.js';
import type { JobOutcome } from '#platform/database/job-queue.js';

/** The way in which changes reach a pass on a device. */
export type PassChannel = 'apple' | 'google_class' | 'google_object' | 'web';

export type PassUpdate = {
  channel: PassChannel;
  /** The channel's own name of a device, class, object or browser. */
  target: string;
  accountId: number;
  /** This one included. */
  attempts: number;
};

export type UpdateRequest = { channel: PassChannel; target: string; accountId: number };

/** The passes of one card template, or of the whole store when `cardId` is null. */
export type CardScope = { accountId: number; cardId: number | null };

/**
 * Sends the updates of one channel. Looks up what to send when it sends it: an update only says that something may have
 * changed.
 */
export abstract class PassSender {
  abstract readonly channel: PassChannel;
  /** False without credentials of this vendor: its updates wait. */
  abstract readonly enabled: boolean;
  /** How many updates are sent at once. */
  abstract readonly concurrency: number;

  /** Finds where passes are installed on this channel. Leaves out unknown cards and those without devices. */
  abstract findTargets(customerCardIds: number[], by: Queryable): Promise<UpdateRequest[]>;

  /** Finds targets that many passes share, which are updated once for all of them. */
  findSharedTargets(_scope: CardScope, _by: Queryable): Promise<UpdateRequest[]> {
    return Promise.resolve([]);
  }

  /**
   * Sends an update.
   * @param signal aborts when the process must end; another process then retries the update
   * @param isLeased to be asked right before something is sent that must not arrive twice
   */
  abstract send(
    update: PassUpdate,
    signal: AbortSignal,
    isLeased: () => boolean,
  ): Promise<JobOutcome>;
}

/** The injection token of all senders. */
export const PASS_SENDERS = Symbol('pass senders');
