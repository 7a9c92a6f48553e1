import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { Readable } from 'node:stream';
import { Pool } from 'pg';
import { Gauge, Registry } from 'prom-client';
import { Config } from '#configuration/config.js';
import { getErrorMessage, RateLimitedError, UnavailableError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { runWithWait } from '#platform/database/database-waits.js';
import { ProcessLink } from '#platform/database/process-link.js';
import { getAddressKey } from '#platform/http/rate-limit.js';

/** The channel of notifications with customer cards and their new tags, as in `12:345 13:346` (migration 0039). */
const CHANNEL = 'inkpad_passes';
/** Proxies close connections that are idle for a minute. */
const ALIVE_EVERY_MS = 25_000;
/** Finds changes whose notification was lost, with one query for all open cards. */
const COMPARE_EVERY_MS = 60_000;
/** The limit after which a browser that does not read is disconnected. An event has fewer than 100 bytes. */
const MAX_UNREAD_BYTES = 16 * 1024;
const RETRY_AFTER_SECONDS = 30;

/** Below the tag of a card that has never changed. */
const NO_TAG = -1;

type Watcher = { stream: Readable; sentTag: number };

/**
 * Notifies the open pages of cards that their card has changed; they then load it themselves.
 */
@Injectable()
export class CardStreams implements OnModuleDestroy {
  private readonly log = new Logger('open cards');
  private readonly watchers = new Map<number, Set<Watcher>>();
  private readonly byAddress = new Map<string, number>();
  private readonly gauge: Gauge;
  private count = 0;
  private isEnding = false;
  private endListening: (() => void) | undefined;
  private timers: NodeJS.Timeout[] = [];

  constructor(
    private readonly pool: Pool,
    private readonly config: Config,
    private readonly link: ProcessLink,
    registry: Registry,
  ) {
    this.gauge = new Gauge({
      name: 'inkpad_open_cards',
      help: 'Open web cards with a live update stream',
      registers: [registry],
    });
  }

  /**
   * Opens a stream of server-sent events about one card.
   * @param shownTag the tag that the page shows; null, or a card that has changed since, causes an event at once
   * @throws RateLimitedError, UnavailableError
   */
  async open(customerCardId: number, shownTag: number | null, ip: string): Promise<Readable> {
    const watcher = this.admit(customerCardId, shownTag, ip);
    try {
      this.endListening ??= this.listen();
      await this.sendMissedChanges([customerCardId]);
    } catch (error) {
      watcher.stream.destroy();
      throw error;
    }
    return watcher.stream;
  }

  /** Ends all streams, because the server's shutdown waits for open connections. */
  onModuleDestroy(): void {
    this.isEnding = true;
    for (const timer of this.timers) clearInterval(timer);
    for (const { stream } of this.all()) stream.push(null);
    this.endListening?.();
  }

  private admit(customerCardId: number, shownTag: number | null, ip: string): Watcher {
    const { max: maxStreams, perAddress } = this.config.openCards;
    const address = getAddressKey(ip);
    const addressCount = this.byAddress.get(address) ?? 0;
    if (addressCount >= perAddress) throw new RateLimitedError(RETRY_AFTER_SECONDS);
    if (this.count >= maxStreams || this.isEnding)
      throw new UnavailableError('Too many cards are open');
    this.byAddress.set(address, addressCount + 1);
    this.changeCount(1);
    const stream = new Readable({ read: () => undefined });
    const watcher = { stream, sentTag: shownTag ?? NO_TAG };
    const watchers = this.watchers.get(customerCardId) ?? new Set();
    this.watchers.set(customerCardId, watchers.add(watcher));
    stream.push(`retry: ${2_000 + Math.floor(Math.random() * 3_000)}\n\n`);
    stream.push(ALIVE);
    // The server also destroys the stream when the browser has left.
    stream.once('close', () => {
      this.changeCount(-1);
      watchers.delete(watcher);
      if (watchers.size === 0) this.watchers.delete(customerCardId);
      const remaining = (this.byAddress.get(address) ?? 1) - 1;
      if (remaining > 0) this.byAddress.set(address, remaining);
      else this.byAddress.delete(address);
    });
    return watcher;
  }

  private changeCount(change: 1 | -1): void {
    this.count += change;
    this.gauge.set(this.count);
  }

  private listen(): () => void {
    const alive = () => {
      for (const watcher of this.all()) send(watcher, ALIVE);
    };
    this.timers = [
      setInterval(alive, ALIVE_EVERY_MS),
      setInterval(() => this.sendAllMissedChanges(), COMPARE_EVERY_MS),
    ];
    for (const timer of this.timers) timer.unref();
    return this.link.listen(
      CHANNEL,
      (payload) => this.receive(payload),
      () => this.sendAllMissedChanges(),
    );
  }

  private receive(payload: string): void {
    for (const entry of payload.split(' ')) {
      const [id, tag] = entry.split(':').map(Number);
      if (id !== undefined && tag !== undefined) this.notifyWatchers(id, tag);
    }
  }

  private sendAllMissedChanges(): void {
    // For all cards, so not as work of the network that opened one of them.
    const sent = runWithWait(undefined, () => this.sendMissedChanges([...this.watchers.keys()]));
    sent.catch((error: unknown) =>
      this.log.warn(
        `open cards could not be checked for missed changes: ${getErrorMessage(error)}`,
      ),
    );
  }

  private async sendMissedChanges(customerCardIds: number[]): Promise<void> {
    if (customerCardIds.length === 0) return;
    const rows = await query<{ customer_card_id: number; tag: number }>(this.pool, {
      name: 'open_cards_tags',
      text: 'select customer_card_id, tag from passes where customer_card_id = any ($1)',
      values: [customerCardIds],
    });
    for (const { customer_card_id: id, tag } of rows) this.notifyWatchers(id, tag);
  }

  private notifyWatchers(customerCardId: number, tag: number): void {
    for (const watcher of this.watchers.get(customerCardId) ?? []) {
      if (tag <= watcher.sentTag) continue;
      watcher.sentTag = tag;
      send(watcher, `event: changed\nid: ${tag}\ndata: ${tag}\n\n`);
    }
  }

  private *all(): Iterable<Watcher> {
    for (const watchers of this.watchers.values()) yield* watchers;
  }
}

/** An event instead of a comment, so that the page can detect a dead connection. */
const ALIVE = 'event: alive\ndata:\n\n';

function send({ stream }: Watcher, text: string): void {
  if (stream.readableLength > MAX_UNREAD_BYTES) stream.destroy();
  else if (!stream.destroyed) stream.push(text);
}
