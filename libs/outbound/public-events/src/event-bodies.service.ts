import { Inject, Injectable, Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Pool } from 'pg';
import { messageOf } from '#kernel/errors.js';
import { isDatabaseUnavailable } from '#database/connection.js';
import { EventStore, type EventRef, type StoredEvent } from '#event-store/event-store.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import { roughBytes } from '#kernel/rough-bytes.js';
import { publicEventId } from '#kernel/public-id.js';
import { found, RENDERERS, type EventRenderer, type Rendered } from './event-renderer.js';
import { withPartitions } from './webhook-partitions.service.js';

/** A row of `webhook_events`. */
export type PublicEventRef = {
  seq: number;
  eventId: string;
  accountId: number;
  customerId: number;
};

/**
 * `erased`: there is nothing left that may be sent. `missing`: the event's day was dropped. `unrendered`: it could not
 * be read or rendered just now.
 */
export type Body = Buffer | 'erased' | 'missing' | 'unrendered';

type Sealed = { ref: PublicEventRef; body: Buffer };

type Rendering = Sealed & { text: Buffer };

const TEXTS_KEPT_BYTES = 16 * 1024 * 1024;
/** As long as keys are cached: a text must not be used for longer than the key that it is sealed with. */
export const TEXT_KEPT_MS = 5_000;
/** Rendering more at once would block the process for too long. */
const RENDERED_AT_ONCE = { first: 32, most: 250, bytes: 1024 * 1024 };
const FRESH_KEPT_BYTES = 16 * 1024 * 1024;
/** The cache's own memory per entry. */
const OVERHEAD_BYTES = 200;

const BODIES = {
  name: 'webhook_bodies_read',
  text: 'select seq, body from webhook_bodies where seq = any ($1)',
};

const KEEP = {
  name: 'webhook_bodies_keep',
  text: `insert into webhook_bodies (seq, body) select * from unnest($1::bigint[], $2::bytea[])
         on conflict (seq) do nothing returning seq`,
};

const PLACES = {
  name: 'webhook_events_places',
  text: `select w.seq, e.stream, e.revision
         from unnest($1::bigint[], $2::bigint[]) as w (account_id, seq)
         cross join lateral (
           select stream, revision from webhook_events x
           where x.account_id = w.account_id and x.seq = w.seq and x.stream is not null limit 1
         ) e`,
};

/**
 * The envelopes of public events. Each is rendered once, when it is first needed, and stored before it is used, so that
 * its bytes are the same at every attempt in any process.
 */
@Injectable()
export class EventBodies {
  private readonly log = new Logger('webhook events');
  private readonly texts = new LRUCache<number, Buffer>({
    maxSize: TEXTS_KEPT_BYTES,
    sizeCalculation: (text) => text.length + OVERHEAD_BYTES,
    ttl: TEXT_KEPT_MS,
  });
  private readonly preparing = new Map<number, Promise<void>>();
  /** Read from the log a moment ago, and not rendered yet. */
  private readonly fresh = new LRUCache<string, StoredEvent>({
    maxSize: FRESH_KEPT_BYTES,
    sizeCalculation: (event) => roughBytes(event) + OVERHEAD_BYTES,
  });

  constructor(
    private readonly pool: Pool,
    private readonly store: EventStore,
    private readonly keys: PersonalKeys,
    @Inject(RENDERERS) private readonly renderers: EventRenderer[],
  ) {}

  /** A stored event that will be asked for soon. */
  remember(eventId: string, event: StoredEvent): void {
    this.fresh.set(eventId, event);
  }

  /** Starts rendering what will be asked for in a moment, once its lane has been claimed and read. */
  prepare(refs: PublicEventRef[]): void {
    const prepared = this.textsOf(refs)
      .then(
        () => undefined,
        // Whoever asks for them runs into the same error.
        (error: unknown) => this.log.debug(messageOf(error)),
      )
      .finally(() => {
        for (const { seq } of refs) this.preparing.delete(seq);
      });
    for (const { seq } of refs) this.preparing.set(seq, prepared);
  }

  /** Envelopes by `seq`, as UTF-8 JSON, one for each ref. */
  async textsOf(refs: PublicEventRef[]): Promise<Map<number, Body>> {
    const prepared = new Set(refs.flatMap(({ seq }) => this.preparing.get(seq) ?? []));
    if (prepared.size > 0) await Promise.all(prepared);
    const found = new Map<number, Body>();
    const unread = new Map<number, PublicEventRef>();
    let planned = 0;
    for (const ref of refs) {
      const text = this.texts.get(ref.seq);
      if (text !== undefined) found.set(ref.seq, text);
      else {
        unread.set(ref.seq, ref);
        if (this.fresh.has(ref.eventId)) planned++;
      }
    }
    if (unread.size === 0) return found;
    // Nobody else has rendered what this process has just planned; if somebody did after all, `keep` finds out.
    if (planned < unread.size) await this.read(unread, found);
    // In the order of the log, so that each stream is folded once from beginning to end.
    const inOrder = [...unread.values()].sort((a, b) => a.seq - b.seq);
    const { first, most, bytes } = RENDERED_AT_ONCE;
    for (let i = 0, count = first; i < inOrder.length;) {
      const some = inOrder.slice(i, i + count);
      await this.render(some, found);
      i += some.length;
      const average = some.reduce((sum, { seq }) => sum + sizeOf(found.get(seq)), 0) / some.length;
      count = Math.max(1, Math.min(most, Math.floor(bytes / Math.max(1, average))));
    }
    return found;
  }

  /** Reads the bodies that are already stored, and moves them from `unread` to `found`. */
  private async read(unread: Map<number, PublicEventRef>, found: Map<number, Body>): Promise<void> {
    const { rows } = await this.pool.query<{ seq: number; body: Buffer }>({
      ...BODIES,
      values: [[...unread.keys()]],
    });
    const sealed = rows.flatMap(({ seq, body }) => {
      const ref = unread.get(seq);
      unread.delete(seq);
      return ref ? [{ ref, body }] : [];
    });
    await this.openAll(sealed, found);
  }

  /** A body that cannot be decrypted must not keep the others from being decrypted. */
  private async openAll(sealed: Sealed[], found: Map<number, Body>): Promise<void> {
    try {
      const texts = await this.keys.openAll(
        sealed.map(({ ref, body }) => ({
          customerId: ref.customerId,
          sealed: body,
          context: bodyContext(ref.eventId),
        })),
      );
      sealed.forEach(({ ref }, i) => found.set(ref.seq, texts[i] ?? 'erased'));
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error;
      const [one] = sealed;
      if (one && sealed.length === 1) this.unrendered(one.ref, error, found);
      else for (const each of sealed) await this.openAll([each], found);
    }
  }

  private unrendered(ref: PublicEventRef, error: unknown, found: Map<number, Body>): void {
    this.log.error(`an event cannot be rendered: ${messageOf(error)}`, {
      event_id: ref.eventId,
      account_id: ref.accountId,
    });
    found.set(ref.seq, 'unrendered');
  }

  /** An event that cannot be rendered must not keep the others from being rendered. */
  private async render(refs: PublicEventRef[], found: Map<number, Body>): Promise<void> {
    try {
      await this.renderAll(refs, found);
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error;
      const [ref] = refs;
      if (ref && refs.length === 1) this.unrendered(ref, error, found);
      else for (const one of refs) await this.render([one], found);
    }
  }

  private async renderAll(refs: PublicEventRef[], found: Map<number, Body>): Promise<void> {
    const { events, placeless } = await this.storedEvents(refs);
    const wanted = refs.flatMap((ref) => {
      const event = events.get(ref.eventId);
      return event ? [{ ref, event }] : [];
    });
    if (wanted.length + placeless.length < refs.length)
      throw new Error('the event is not in the history');
    for (const { seq } of placeless) found.set(seq, 'missing');
    if (wanted.length === 0) return;
    const rendered = await this.rendered(wanted.map(({ event }) => event));
    const texts = rendered.map(({ event }) => Buffer.from(JSON.stringify(event)));
    const bodies = await this.keys.sealAll(
      rendered.map(({ event, customerId }, i) => ({
        customerId,
        plain: texts[i] ?? null,
        context: bodyContext(event.id),
      })),
    );
    const sealed: Rendering[] = [];
    wanted.forEach(({ ref }, i) => {
      const [body, text] = [bodies[i], texts[i]];
      if (body && text) sealed.push({ ref, body, text });
      else found.set(ref.seq, 'erased');
    });
    const kept = await this.keep(sealed);
    const overtaken = new Map<number, PublicEventRef>();
    for (const { ref, text } of sealed) {
      this.fresh.delete(ref.eventId);
      if (!kept.has(ref.seq)) overtaken.set(ref.seq, ref);
      else {
        found.set(ref.seq, text);
        this.texts.set(ref.seq, text);
      }
    }
    // Another process has stored these first, so its bytes are used.
    if (overtaken.size > 0) await this.read(overtaken, found);
  }

  /** Takes a handful of queries per batch, however large it is. */
  private async rendered(events: StoredEvent[]): Promise<Rendered[]> {
    const opened = await this.keys.opened(events);
    const byId = new Map<string, Rendered>();
    for (const renderer of this.renderers) {
      const own = opened.filter(({ stream }) => stream.startsWith(`${renderer.aggregate}-`));
      if (own.length === 0) continue;
      for (const [id, one] of await renderer.render(own)) byId.set(id, one);
    }
    return events.map(({ id }) => found(byId.get(id), `the rendering of event ${id}`));
  }

  private async keep(sealed: Rendering[]): Promise<Set<number>> {
    if (sealed.length === 0) return new Set();
    const { rows } = await withPartitions(this.pool, () =>
      this.pool.query<{ seq: number }>({
        ...KEEP,
        values: [sealed.map(({ ref }) => ref.seq), sealed.map(({ body }) => body)],
      }),
    );
    return new Set(rows.map(({ seq }) => seq));
  }

  /** @returns the stored events by event id, and the refs whose place in the history is no longer kept */
  private async storedEvents(
    refs: PublicEventRef[],
  ): Promise<{ events: Map<string, StoredEvent>; placeless: PublicEventRef[] }> {
    const events = new Map<string, StoredEvent>();
    const missing: PublicEventRef[] = [];
    for (const ref of refs) {
      const event = this.fresh.get(ref.eventId);
      if (event) events.set(ref.eventId, event);
      else missing.push(ref);
    }
    if (missing.length === 0) return { events, placeless: [] };
    const { rows } = await this.pool.query<EventRef & { seq: number }>({
      ...PLACES,
      values: [missing.map(({ accountId }) => accountId), missing.map(({ seq }) => seq)],
    });
    for (const event of await this.store.readEvents(rows)) {
      events.set(publicEventId(event.id), event);
    }
    const placed = new Set(rows.map(({ seq }) => seq));
    return { events, placeless: missing.filter(({ seq }) => !placed.has(seq)) };
  }
}

function sizeOf(body: Body | undefined): number {
  return Buffer.isBuffer(body) ? body.length : 0;
}

function bodyContext(eventId: string): string {
  return `webhook body ${eventId}`;
}
