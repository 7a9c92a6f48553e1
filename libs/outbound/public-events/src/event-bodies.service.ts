import { Inject, Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { messageOf } from '#kernel/errors.js';
import { ExpiringCache } from '#kernel/expiring-cache.js';
import { countKeptBytes, encodeToKeep } from '#kernel/kept-bytes.js';
import { byteaArray } from '#database/bytea-array.js';
import { isDatabaseUnavailable } from '#database/connection.js';
import { EventStore, type EventRef, type StoredEvent } from '#event-store/event-store.js';
import { NOBODY, PersonalKeys } from '#event-store/personal-keys.js';
import { seal } from '#kernel/sealing.js';
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

/** `missing`: the event's day was dropped. `unrendered`: it could not be read or rendered just now. */
export type Body = Buffer | 'missing' | 'unrendered';

type Sealed = { ref: PublicEventRef; body: Buffer };

/** @property stale the stored body, sealed with the key of somebody who was erased since: it is to be replaced */
type Unread = { ref: PublicEventRef; stale?: Buffer };

/** An envelope, as UTF-8 JSON, and as it is stored. */
export type Envelope = { text: Buffer; sealed: Buffer };

type Rendering = Unread & Envelope;

const TEXTS_KEPT_BYTES = 16 * 1024 * 1024;
/** As long as keys are cached: a text must not be used for longer than the key that it is sealed with. */
export const TEXT_KEPT_MS = 5_000;
/** Rendering more at once would block the process for too long. */
const RENDERED_AT_ONCE = { first: 32, most: 250, bytes: 1024 * 1024 };
const FRESH_KEPT_BYTES = 16 * 1024 * 1024;
/** Another dispatcher may have sent it, and then nobody here asks for it. */
const FRESH_KEPT_MS = 60_000;
/** The cache's own memory per entry. */
const OVERHEAD_BYTES = 200;

const BODIES = {
  name: 'webhook_bodies_read',
  text: 'select seq, body from webhook_bodies where seq = any ($1)',
};

const KEEP = {
  name: 'webhook_bodies_keep',
  text: `
    with rendered as (
      select * from unnest($1::bigint[], $2::bytea[], $3::bytea[]) as r (seq, body, stale)
    ), replaced as (
      update webhook_bodies b set body = r.body from rendered r
      where r.stale is not null and b.seq = r.seq and b.body = r.stale
      returning b.seq
    ), added as (
      insert into webhook_bodies (seq, body) select seq, body from rendered where stale is null
      on conflict (seq) do nothing returning seq
    )
    select seq from replaced union all select seq from added`,
};

const PLACES = {
  name: 'webhook_events_places',
  text: `select w.seq, e.stream, e.revision
         from unnest($1::bigint[], $2::bigint[]) as w (account_id, seq)
         cross join lateral (
           select stream, revision from webhook_events x
           where x.account_id = w.account_id and x.seq = w.seq limit 1
         ) e`,
};

/**
 * The envelopes of public events. Each is rendered once, when it is first needed, and stored before it is used, so that
 * its bytes are the same at every attempt in any process. When the person whom it is about is erased, nobody can open
 * what was stored any more; it is rendered once again, without them.
 */
@Injectable()
export class EventBodies {
  private readonly log = new Logger('webhook events');
  /** With when what each is made from began to be read. */
  private readonly texts = new ExpiringCache<number, { text: Buffer; began: number }>({
    maxSize: TEXTS_KEPT_BYTES,
    sizeCalculation: ({ text }) => countKeptBytes(text),
    ttl: TEXT_KEPT_MS,
  });
  /** Read from the log a moment ago, and not rendered yet. */
  private readonly fresh = new ExpiringCache<string, StoredEvent>({
    maxSize: FRESH_KEPT_BYTES,
    ttl: FRESH_KEPT_MS,
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

  /**
   * Renders events that have just been recorded, for whoever stores them with their plan.
   * @returns by event id; those that cannot be rendered just now are rendered when they are asked for
   */
  async ahead(events: StoredEvent[]): Promise<Map<string, Envelope>> {
    const ready = events.filter((event) =>
      this.renderers.some((renderer) => isOf(renderer, event) && !renderer.waitsFor(event)),
    );
    if (ready.length === 0) return new Map();
    try {
      const envelopes = await this.envelopes(ready);
      return new Map(
        ready.map(({ id }, i) => [publicEventId(id), found(envelopes[i], 'an envelope')]),
      );
    } catch (error) {
      // Whoever asks for them runs into the same error.
      this.log.debug(messageOf(error));
      return new Map();
    }
  }

  /** An envelope that is now stored. @param began when it was rendered, by `performance.now()` */
  stored(seq: number, text: Buffer, began: number): void {
    this.texts.set(seq, { text, began }, { start: began });
  }

  /** Envelopes by `seq`, as UTF-8 JSON, one for each ref. */
  async textsOf(refs: PublicEventRef[]): Promise<Map<number, Body>> {
    const askedAt = performance.now();
    const found = await this.readOrRender(refs);
    const { erasures } = this.keys;
    const outdated = refs.filter(({ customerId }) => erasures.isOutdated(customerId, askedAt));
    return outdated.length === 0 ? found : new Map([...found, ...(await this.textsOf(outdated))]);
  }

  private async readOrRender(refs: PublicEventRef[]): Promise<Map<number, Body>> {
    const found = new Map<number, Body>();
    const unread = new Map<number, Unread>();
    const { erasures } = this.keys;
    const now = performance.now();
    let planned = 0;
    for (const ref of refs) {
      const known = this.texts.get(ref.seq);
      if (known && erasures.isCurrent(ref.customerId, known.began, now))
        found.set(ref.seq, known.text);
      else {
        unread.set(ref.seq, { ref });
        if (this.fresh.has(ref.eventId)) planned++;
      }
    }
    if (unread.size === 0) return found;
    // Nobody else has rendered what this process has just planned; if somebody did after all, `keep` finds out.
    if (planned < unread.size) await this.read(unread, found);
    await this.renderInTurn([...unread.values()], found);
    return found;
  }

  /** In two turns beside each other: while one of them waits for the database, the other one renders. */
  private async renderInTurn(unread: Unread[], found: Map<number, Body>): Promise<void> {
    // In the order of the log, so that each stream is folded once from beginning to end.
    unread.sort((a, b) => a.ref.seq - b.ref.seq);
    let [begun, count] = [0, RENDERED_AT_ONCE.first];
    const renderOn = async () => {
      while (begun < unread.length) {
        const some = unread.slice(begun, begun + count);
        begun += some.length;
        try {
          await this.render(some, found);
        } catch (error) {
          begun = unread.length;
          throw error;
        }
        count = countAfter(some.map(({ ref }) => sizeOf(found.get(ref.seq))));
      }
    };
    const turns = await Promise.allSettled([renderOn(), renderOn()]);
    for (const turn of turns) if (turn.status === 'rejected') throw turn.reason;
  }

  /** Reads the bodies that are already stored, and moves them from `unread` to `found`. Those that are stale stay. */
  private async read(unread: Map<number, Unread>, found: Map<number, Body>): Promise<void> {
    const { rows } = await this.pool.query<{ seq: number; body: Buffer }>({
      ...BODIES,
      values: [[...unread.keys()]],
    });
    const sealed = rows.flatMap(({ seq, body }) => {
      const ref = unread.get(seq)?.ref;
      return ref ? [{ ref, body }] : [];
    });
    const stale = await this.openAll(sealed, found);
    for (const { ref } of sealed) unread.delete(ref.seq);
    for (const { ref, body } of stale) unread.set(ref.seq, { ref, stale: body });
  }

  /**
   * A body that cannot be decrypted must not keep the others from being decrypted.
   * @returns those whose key is destroyed
   */
  private async openAll(sealed: Sealed[], found: Map<number, Body>): Promise<Sealed[]> {
    try {
      const texts = await this.keys.openAll(
        sealed.map(({ ref, body }) => ({
          subjectId: ref.customerId,
          sealed: body,
          context: bodyContext(ref.eventId),
        })),
      );
      const stale: Sealed[] = [];
      for (const [i, one] of sealed.entries()) {
        const text = texts[i] ?? (await this.redactedText(one));
        if (text) found.set(one.ref.seq, text);
        else stale.push(one);
      }
      return stale;
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error;
      const [one] = sealed;
      if (!one) return [];
      if (sealed.length > 1) {
        const stale: Sealed[] = [];
        for (const each of sealed) stale.push(...(await this.openAll([each], found)));
        return stale;
      }
      // This process may still know the key that another one has seen destroyed.
      const text = await this.redactedText(one);
      if (text) found.set(one.ref.seq, text);
      else this.unrendered(one.ref, error, found);
      return [];
    }
  }

  /** Undefined when the body is not one that was rendered after an erasure. */
  private async redactedText({ ref, body }: Sealed): Promise<Buffer | undefined> {
    const about = { subjectId: NOBODY, sealed: body, context: redactedContext(ref.eventId) };
    try {
      return (await this.keys.openAll([about]))[0];
    } catch {
      return undefined;
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
  private async render(unread: Unread[], found: Map<number, Body>): Promise<void> {
    try {
      await this.renderAll(unread, found);
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error;
      const [one] = unread;
      if (one && unread.length === 1) this.unrendered(one.ref, error, found);
      else for (const each of unread) await this.render([each], found);
    }
  }

  private async renderAll(unread: Unread[], texts: Map<number, Body>): Promise<void> {
    const { events, placeless } = await this.storedEvents(unread.map(({ ref }) => ref));
    const wanted = unread.flatMap((one) => {
      const event = events.get(one.ref.eventId);
      return event ? [{ ...one, event }] : [];
    });
    if (wanted.length + placeless.length < unread.length)
      throw new Error('the event is not in the history');
    for (const { seq } of placeless) texts.set(seq, 'missing');
    if (wanted.length === 0) return;
    const began = performance.now();
    const envelopes = await this.envelopes(wanted.map(({ event }) => event));
    const sealed = wanted.map(({ ref, stale }, i): Rendering => ({
      ref,
      ...(stale && { stale }),
      ...found(envelopes[i], 'an envelope'),
    }));
    const kept = await this.keep(sealed);
    const overtaken = new Map<number, Unread>();
    for (const { ref, text } of sealed) {
      this.fresh.delete(ref.eventId);
      if (!kept.has(ref.seq)) overtaken.set(ref.seq, { ref });
      else {
        texts.set(ref.seq, text);
        this.texts.set(ref.seq, { text, began }, { start: began });
      }
    }
    if (overtaken.size === 0) return;
    // Another process has stored these first, so its bytes are used, unless their key was destroyed since.
    await this.read(overtaken, texts);
    if (overtaken.size > 0) await this.renderAll([...overtaken.values()], texts);
  }

  /** Takes a handful of queries per batch, however large it is. */
  private async envelopes(events: StoredEvent[]): Promise<Envelope[]> {
    const byAggregate = await Promise.all(
      this.renderers.map(async (renderer) => {
        const isOwn = (event: StoredEvent) => isOf(renderer, event);
        const own = events.filter(isOwn);
        return own.length > 0 && { isOwn, render: await renderer.prepare(own) };
      }),
    );
    // Whoever's key is not among these is rendered redacted, and nothing else is ever sealed with a key that stays.
    const keys = await this.keys.load([NOBODY, ...events.map(customerOf)]);
    const opened = await this.keys.opened(events);
    const rendered = new Map<string, Rendered>();
    for (const one of byAggregate) {
      if (!one) continue;
      const own = await one.render(opened.filter(one.isOwn), (id) => !keys.has(id));
      for (const [id, envelope] of own) rendered.set(id, envelope);
    }
    return events.map(({ id }) => {
      const { event, customerId } = found(rendered.get(id), `the rendering of event ${id}`);
      const text = encodeToKeep(JSON.stringify(event));
      const key = keys.get(customerId);
      const sealed = key
        ? seal(key, text, bodyContext(event.id))
        : seal(found(keys.get(NOBODY), 'the key of nobody'), text, redactedContext(event.id));
      return { text, sealed };
    });
  }

  private async keep(sealed: Rendering[]): Promise<Set<number>> {
    if (sealed.length === 0) return new Set();
    const { rows } = await withPartitions(this.pool, () =>
      this.pool.query<{ seq: number }>({
        ...KEEP,
        values: [
          sealed.map(({ ref }) => ref.seq),
          byteaArray(sealed.map((one) => one.sealed)),
          byteaArray(sealed.map(({ stale }) => stale ?? null)),
        ],
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

function isOf({ aggregate }: EventRenderer, { stream }: StoredEvent): boolean {
  return stream.startsWith(`${aggregate}-`);
}

/** The customer whom the event is about: the body is sealed with their key, and their events stay in order. */
export function customerOf({ data: { customerId } }: StoredEvent): number {
  return typeof customerId === 'number' ? customerId : NOBODY;
}

/** How many events to render at once, by the sizes of those before. */
function countAfter(sizes: number[]): number {
  const { most, bytes } = RENDERED_AT_ONCE;
  const average = sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
  return Math.max(1, Math.min(most, Math.floor(bytes / Math.max(1, average))));
}

function sizeOf(body: Body | undefined): number {
  return Buffer.isBuffer(body) ? body.length : 0;
}

function bodyContext(eventId: string): string {
  return `webhook body ${eventId}`;
}

function redactedContext(eventId: string): string {
  return `webhook body ${eventId}, redacted`;
}
