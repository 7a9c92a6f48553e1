import type { Logger } from '@nestjs/common';
import { ConfigError } from '#platform/kernel/config-error.js';
import {
  EventStoreUnavailableError,
  getMessageWithCause,
  UnavailableError,
} from '#platform/kernel/errors.js';
import { pause } from '#platform/kernel/pause.js';
import { findEventStoreConfigError } from './event-store-wait.js';
import { NoResponseError, toUnavailableError, awaitResponse } from './eventstoredb-errors.js';
import type { EventStoreDbReader } from './eventstoredb-reader.js';
import { RareWarnings } from './rare-warnings.js';

const SILENT_MS = 2_000;
const POLL_INTERVALS_MS = { open: 5_000, closed: 1_000 };
/** Until then nobody has restored a backup or changed a setting. */
const UNUSABLE_SECONDS = 60;
/** Longer than a look takes, unless the checks of a history take long. */
const LOOK_WITHIN_MS = 60_000;

/**
 * Watches whether the server responds, and opens the history once it does: a start does not wait for that, and nothing
 * is read or changed before (ADR-0144).
 */
export class EventStoreDbWatch {
  private readonly rareWarnings: RareWarnings;
  private isOpen = false;
  /** Why the last look failed. */
  private failure: unknown;
  private opening: Promise<void> | undefined;

  /** @param openHistory checks that the history may be used */
  constructor(
    private readonly reader: EventStoreDbReader,
    private readonly url: string,
    private readonly log: Logger,
    private readonly openHistory: () => Promise<void>,
  ) {
    this.rareWarnings = new RareWarnings(log);
  }

  /** Whether the server responded to the last look, and the history may be used. */
  get isReachable(): boolean {
    return this.isOpen && this.failure === undefined;
  }

  /** Takes the history as open, because the caller has checked it. */
  setOpen(): void {
    this.isOpen = true;
  }

  /**
   * Checks that the history is open. While it is not, only the watch looks again: callers would wait for a silent server.
   * @throws UnavailableError
   */
  async assertOpen(): Promise<void> {
    if (this.isOpen) return;
    try {
      if (this.failure !== undefined) throw this.failure;
      await this.open();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      throw new EventStoreUnavailableError('The event store cannot be used', {
        cause: error,
        retryAfterSeconds: UNUSABLE_SECONDS,
        resolution:
          'Nothing was written. Sending the request again does not help: tell whoever runs the service.',
      });
    }
  }

  /** Waits until the history is open, or the signal aborts. */
  async waitUntilOpen(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        return await this.assertOpen();
      } catch (error) {
        this.warn(error);
        await pause(POLL_INTERVALS_MS.closed, signal);
      }
    }
  }

  /**
   * Looks for the first time, for two seconds if the server is silent.
   * @throws ConfigError when the history there is not ours, or the server refuses us
   */
  async lookFirst(): Promise<void> {
    await this.look();
    if (this.failure !== undefined && !(this.failure instanceof UnavailableError))
      throw this.failure;
  }

  /** Looks again and again, and runs work after each look that has found the history open. */
  async run(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
    for (;;) {
      if (this.isReachable) await work();
      await pause(this.isOpen ? POLL_INTERVALS_MS.open : POLL_INTERVALS_MS.closed, signal);
      // A look would open a connection that nobody closes any more.
      if (signal.aborted) return;
      await Promise.race([this.look(signal), pause(LOOK_WITHIN_MS, signal)]);
    }
  }

  private async look(signal?: AbortSignal): Promise<void> {
    let failure: unknown;
    try {
      await awaitResponse(this.reader.readHead(), SILENT_MS);
      if (!this.isOpen) await this.open();
    } catch (error) {
      failure = await this.explain(error);
    }
    if (signal?.aborted) return;
    if (failure !== undefined) {
      this.warn(failure);
    } else if (this.failure !== undefined) {
      this.log.log('the event store responds again');
    }
    this.failure = failure;
  }

  private warn(failure: unknown): void {
    this.rareWarnings.warn('the event store cannot be used', getMessageWithCause(failure));
  }

  /** Opens the history once, however many callers wait for it. */
  private open(): Promise<void> {
    const open = async () => {
      await this.openHistory();
      this.isOpen = true;
    };
    return (this.opening ??= open().finally(() => (this.opening = undefined)));
  }

  private async explain(error: unknown): Promise<unknown> {
    if (error instanceof NoResponseError) return toUnavailableError(error, 'read');
    if (this.isOpen || !(error instanceof UnavailableError)) return error;
    return (await findEventStoreConfigError(error, this.url)) ?? error;
  }
}
