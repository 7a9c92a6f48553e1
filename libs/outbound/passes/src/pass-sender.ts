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

/** One channel's way of sending. It looks up itself what is to be sent now: an update only says that there is something. */
export abstract class PassSender {
  abstract readonly channel: PassChannel;
  /** Updates under way at once. */
  abstract readonly atOnce: number;
  /** Started in any second; null: as many as there are. */
  abstract readonly perSecond: number | null;

  /** Without credentials of this vendor there is nothing to send. */
  abstract readonly enabled: boolean;

  /** @param signal aborts when the process must end; the update is then tried again by another */
  abstract send(update: PassUpdate, signal: AbortSignal): Promise<PassOutcome>;
}
