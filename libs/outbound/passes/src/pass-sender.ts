/** How a pass on a device is told of changes. */
export type PassChannel = 'apple' | 'google_class' | 'google_object' | 'web';

export type PassUpdate = {
  channel: PassChannel;
  /** The channel's own name of a device, class, object or browser. */
  target: string;
  accountId: number;
  /** This one included. */
  attempts: number;
};

/**
 * done: nothing is left to do, even if there was nothing to do at all. failed: once more later, after the given time
 * if the other side named one. refused: trying again would not help, and the reason is logged.
 */
export type PassOutcome =
  | { kind: 'done' }
  | { kind: 'failed'; error: string; retryInMs?: number }
  | { kind: 'refused'; error: string };

export type UpdateRequest = { channel: PassChannel; target: string; accountId: number };

/** The passes of one card template; null: of the whole store. */
export type CardScope = { accountId: number; cardId: number | null };

/**
 * One channel's way of sending. It looks up itself what is to be sent now: an update only says that there may be
 * something.
 */
export abstract class PassSender {
  abstract readonly channel: PassChannel;
  /** False without credentials of this vendor: its updates wait. */
  abstract readonly enabled: boolean;
  /** Updates under way at once. */
  abstract readonly concurrency: number;

  /** Where passes are installed, as far as this channel reaches. Those of unknown cards and without devices are left out. */
  abstract findTargets(customerCardIds: number[]): Promise<UpdateRequest[]>;

  /** What many passes have in common, and is updated once for all of them. */
  findSharedTargets(_scope: CardScope): Promise<UpdateRequest[]> {
    return Promise.resolve([]);
  }

  /** @param signal aborts when the process must end; the update is then tried again by another */
  abstract send(update: PassUpdate, signal: AbortSignal): Promise<PassOutcome>;
}

/** The injection token of all senders. */
export const PASS_SENDERS = Symbol('pass senders');
