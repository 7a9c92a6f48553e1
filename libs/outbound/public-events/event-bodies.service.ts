import { Inject, Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { ExpiringCache } from '#platform/kernel/expiring-cache.js';
import { countKeptBytes, encodeToKeep } from '#platform/kernel/kept-bytes.js';
import { isDatabaseUnavailable } from '#platform/database/connection.js';
import {
  EventStore,
  type EventRef,
  type StoredEvent,
} from '#platform/event-store/port/event-store.js';
import { NOBODY, PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { seal } from '#platform/kernel/sealing.js';
import { estimateBytes } from '#platform/kernel/rough-bytes.js';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import {
  belongsTo,
  chooseBatchSize,
  getDefined,
  INITIAL_BATCH_SIZE,
  RENDERERS,
  type EventRenderer,
  type RenderedEvent,
} from './event-renderer.js';
import type { Body } from './public-events.js';
import { withPartitions } from './webhook-partitions.service.js';

/** A row of `webhook_events`. */
export type PublicEventRef = {
  seq: number;
  eventId: string;
  accountId: number;
  customerId: number;
};

/** By `seq`. */
type Bodies = Map<number, Body>;

type SealedBody = { ref: PublicEventRef; body: Buffer };

/** @property stale the stored body to be replaced, sealed with the key of a customer who was erased since */
type UnreadBody = { ref: PublicEventRef; stale?: Buffer };

/** An envelope as UTF-8 JSON, and sealed for storage. */
export type Envelope = { text: Buffer; sealed: Buffer };

type Rendering = UnreadBody & Envelope;

const TEXT_CACHE_BYTES = 16 * 1024 * 1024;
/** Equal to the time for which keys are cached: a text must not be used for longer than its key. */
export const TEXT_CACHE_MS = 5_000;
const EVENT_CACHE_BYTES = 16 * 1024 * 1024;
/** Another dispatcher may deliver the event, and then this process does not need it. */
const EVENT_CACHE_MS = 60_000;
/** The memory overhead of the cache per entry. */
const OVERHEAD_BYTES = 200;

const FIND_BODIES = {
  name: 'webhook_bodies_read',
  text: 'select seq, body from webhook_bodies where seq = any ($1)',
};

const STORE_BODIES = {
  name: 'webhook_bodies_store',
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

const FIND_PLACES = {
  name: 'webhook_events_find',
  text: `select w.seq, e.stream, e.revision
         from unnest($1::bigint[], $2::bigint[]) as w (account_id, seq)
         cross join lateral (
           select stream, revision from webhook_events x
           where x.account_id = w.account_id and x.seq = w.seq limit 1
         ) e`,
};

/**
 * Renders the envelopes of public events. Each is rendered once, when it is first needed, and stored before it is used,
 * so that its bytes are the same at every attempt in any process. When its customer is erased, the stored envelope can
 * no longer be decrypted, and it is rendered once again without personal data.
 */
@Injectable()
export class EventBodies {
  private readonly log = new Logger('webhook events');
  /** Caches texts by event id, with the time at which the read of their data started. */
  private readonly texts = new ExpiringCache<string, { text: Buffer; startedAt: number }>({
    maxSize: TEXT_CACHE_BYTES,
    sizeCalculation: ({ text }) => countKeptBytes(text),
    ttl: TEXT_CACHE_MS,
  });
  /** Caches events that were just read from the log and are not rendered yet. */
  private readonly recentEvents = new ExpiringCache<string, StoredEvent>({
    maxSize: EVENT_CACHE_BYTES,
    ttl: EVENT_CACHE_MS,
    sizeCalculation: (event) => estimateBytes(event) + OVERHEAD_BYTES,
  });

  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly keys: PersonalKeys,
    @Inject(RENDERERS) private readonly renderers: EventRenderer[],
  ) {}

  /** Caches a stored event that will be needed soon. */
  remember(eventId: string, event: StoredEvent): void {
    this.recentEvents.set(eventId, event);
  }

  /**
   * Renders events that have just been recorded, so that they can be stored together with their deliveries.
   * @returns by event id; events that cannot be rendered just now are rendered when they are needed
   */
  async renderAhead(events: StoredEvent[]): Promise<Map<string, Envelope>> {
    const ready = events.filter((event) =>
      this.renderers.some((renderer) => belongsTo(renderer, event) && !renderer.mayTakeLong(event)),
    );
    if (ready.length === 0) return new Map();
    try {
      const envelopes = await this.renderEnvelopes(ready);
      return new Map(
        ready.map(({ id }, i) => [toPublicEventId(id), getDefined(envelopes[i], 'an envelope')]),
      );
    } catch (error) {
      // The error occurs again when they are needed, and is reported then.
      this.log.debug(getErrorMessage(error));
      return new Map();
    }
  }

  /** Caches an envelope that is stored now. @param startedAt when it was rendered, by `performance.now()` */
  rememberStored(eventId: string, text: Buffer, startedAt: number): void {
    this.texts.set(eventId, { text, startedAt }, { start: startedAt });
  }

  /** Gets one envelope for each ref by `seq`, as UTF-8 JSON. */
  async getTexts(refs: PublicEventRef[]): Promise<Bodies> {
    const requestedAt = performance.now();
    const bodies = await this.readOrRender(refs);
    const { erasures } = this.keys;
    const outdated = refs.filter(({ customerId }) => erasures.isOutdated(customerId, requestedAt));
    if (outdated.length === 0) return bodies;
    return new Map([...bodies, ...(await this.getTexts(outdated))]);
  }

  private async readOrRender(refs: PublicEventRef[]): Promise<Bodies> {
    const bodies = new Map<number, Body>();
    const unread = new Map<number, UnreadBody>();
    const { erasures } = this.keys;
    const now = performance.now();
    let recentCount = 0;
    for (const ref of refs) {
      const cached = this.texts.get(ref.eventId);
      if (cached && erasures.isCurrent(ref.customerId, cached.startedAt, now))
        bodies.set(ref.seq, cached.text);
      else {
        unread.set(ref.seq, { ref });
        if (this.recentEvents.has(ref.eventId)) recentCount++;
      }
    }
    if (unread.size === 0) return bodies;
    // No other process has rendered what this one has just enqueued; if it has, `storeBodies` notices.
    if (recentCount < unread.size) await this.readStored(unread, bodies);
    await this.renderInBatches([...unread.values()], bodies);
    return bodies;
  }

  /** Renders two batches concurrently: while one waits for the database, the other one renders. */
  private async renderInBatches(unread: UnreadBody[], bodies: Bodies): Promise<void> {
    // In the order of the log, so that each stream is projected once from beginning to end.
    unread.sort((a, b) => a.ref.seq - b.ref.seq);
    let [nextIndex, count] = [0, INITIAL_BATCH_SIZE];
    const renderNextBatches = async () => {
      while (nextIndex < unread.length) {
        const batch = unread.slice(nextIndex, nextIndex + count);
        nextIndex += batch.length;
        try {
          await this.render(batch, bodies);
        } catch (error) {
          nextIndex = unread.length;
          throw error;
        }
        count = chooseBatchSize(batch.map(({ ref }) => bodies.get(ref.seq)));
      }
    };
    const results = await Promise.allSettled([renderNextBatches(), renderNextBatches()]);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  /** Reads the bodies that are already stored, and moves them from `unread` to `bodies`, except stale ones. */
  private async readStored(unread: Map<number, UnreadBody>, bodies: Bodies): Promise<void> {
    const { rows } = await this.pool.query<{ seq: number; body: Buffer }>({
      ...FIND_BODIES,
      values: [[...unread.keys()]],
    });
    const sealed = rows.flatMap(({ seq, body }) => {
      const ref = unread.get(seq)?.ref;
      return ref ? [{ ref, body }] : [];
    });
    const stale = await this.openAll(sealed, bodies);
    for (const { ref } of sealed) unread.delete(ref.seq);
    for (const { ref, body } of stale) unread.set(ref.seq, { ref, stale: body });
  }

  /**
   * Decrypts bodies. One that cannot be decrypted does not prevent the others.
   * @returns the bodies whose key is destroyed
   */
  private async openAll(sealed: SealedBody[], bodies: Bodies): Promise<SealedBody[]> {
    try {
      const texts = await this.keys.openAll(
        sealed.map(({ ref, body }) => ({
          subjectId: ref.customerId,
          sealed: body,
          context: toBodyContext(ref.eventId),
        })),
      );
      const stale: SealedBody[] = [];
      for (const [i, entry] of sealed.entries()) {
        const text = texts[i] ?? (await this.openRedacted(entry));
        if (text) bodies.set(entry.ref.seq, text);
        else stale.push(entry);
      }
      return stale;
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error;
      const [entry] = sealed;
      if (!entry) return [];
      if (sealed.length > 1) {
        const stale: SealedBody[] = [];
        for (const entry of sealed) stale.push(...(await this.openAll([entry], bodies)));
        return stale;
      }
      // This process may still have cached a key that another one knows is destroyed.
      const text = await this.openRedacted(entry);
      if (text) bodies.set(entry.ref.seq, text);
      else this.markUnrendered(entry.ref, error, bodies);
      return [];
    }
  }

  /** Decrypts a body that was rendered after an erasure. Returns undefined for any other body. */
  private async openRedacted({ ref, body }: SealedBody): Promise<Buffer | undefined> {
    const input = { subjectId: NOBODY, sealed: body, context: toRedactedContext(ref.eventId) };
    try {
      return (await this.keys.openAll([input]))[0];
    } catch {
      return undefined;
    }
  }

  private markUnrendered(ref: PublicEventRef, error: unknown, bodies: Bodies): void {
    this.log.error(`an event cannot be rendered: ${getErrorMessage(error)}`, {
      event_id: ref.eventId,
      account_id: ref.accountId,
    });
    bodies.set(ref.seq, 'unrendered');
  }

  /** Renders events. One that cannot be rendered does not prevent the others. */
  private async render(unread: UnreadBody[], bodies: Bodies): Promise<void> {
    try {
      await this.renderAll(unread, bodies);
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error;
      const [entry] = unread;
      if (entry && unread.length === 1) this.markUnrendered(entry.ref, error, bodies);
      else for (const entry of unread) await this.render([entry], bodies);
    }
  }

  private async renderAll(unread: UnreadBody[], bodies: Bodies): Promise<void> {
    const { events, expired } = await this.findStoredEvents(unread.map(({ ref }) => ref));
    const renderable = unread.flatMap((entry) => {
      const event = events.get(entry.ref.eventId);
      return event ? [{ ...entry, event }] : [];
    });
    if (renderable.length + expired.length < unread.length)
      throw new Error('the event is not in the history');
    for (const { seq } of expired) bodies.set(seq, 'missing');
    if (renderable.length === 0) return;
    const startedAt = performance.now();
    const envelopes = await this.renderEnvelopes(renderable.map(({ event }) => event));
    const sealed = renderable.map(({ ref, stale }, i): Rendering => ({
      ref,
      ...(stale && { stale }),
      ...getDefined(envelopes[i], 'an envelope'),
    }));
    const storedSeqs = await this.storeBodies(sealed);
    const outrun = new Map<number, UnreadBody>();
    for (const { ref, text } of sealed) {
      this.recentEvents.delete(ref.eventId);
      if (!storedSeqs.has(ref.seq)) outrun.set(ref.seq, { ref });
      else {
        bodies.set(ref.seq, text);
        this.texts.set(ref.eventId, { text, startedAt }, { start: startedAt });
      }
    }
    if (outrun.size === 0) return;
    // Another process has stored these first, so its bytes are used, unless their key was destroyed meanwhile.
    await this.readStored(outrun, bodies);
    if (outrun.size > 0) await this.renderAll([...outrun.values()], bodies);
  }

  /** Renders a batch with a constant number of queries, whatever its size. */
  private async renderEnvelopes(events: StoredEvent[]): Promise<Envelope[]> {
    const byAggregate = await Promise.all(
      this.renderers.map(async (renderer) => {
        const isOwn = (event: StoredEvent) => belongsTo(renderer, event);
        const own = events.filter(isOwn);
        return own.length > 0 && { isOwn, render: await renderer.prepare(own) };
      }),
    );
    // A customer without a key is rendered redacted. Only redacted bodies are sealed with the key that is never
    // destroyed.
    const keys = await this.keys.load([NOBODY, ...events.map(getEventCustomerId)]);
    const opened = await this.keys.openEvents(events);
    const rendered = new Map<string, RenderedEvent>();
    for (const group of byAggregate) {
      if (!group) continue;
      const renderedEvents = await group.render(opened.filter(group.isOwn), (id) => !keys.has(id));
      for (const [id, envelope] of renderedEvents) rendered.set(id, envelope);
    }
    return events.map(({ id }) => {
      const { event, customerId } = getDefined(rendered.get(id), `the rendering of event ${id}`);
      const text = encodeToKeep(JSON.stringify(event));
      const key = keys.get(customerId);
      const nobodyKey = () => getDefined(keys.get(NOBODY), 'the key of nobody');
      const sealed = key
        ? seal(key, text, toBodyContext(event.id))
        : seal(nobodyKey(), text, toRedactedContext(event.id));
      return { text, sealed };
    });
  }

  private async storeBodies(sealed: Rendering[]): Promise<Set<number>> {
    if (sealed.length === 0) return new Set();
    const { rows } = await withPartitions(this.pool, () =>
      this.pool.query<{ seq: number }>({
        ...STORE_BODIES,
        values: [
          sealed.map(({ ref }) => ref.seq),
          sealed.map((entry) => entry.sealed),
          sealed.map(({ stale }) => stale ?? null),
        ],
      }),
    );
    return new Set(rows.map(({ seq }) => seq));
  }

  /** Finds stored events by event id. @returns also the refs whose place in the history is no longer stored */
  private async findStoredEvents(
    refs: PublicEventRef[],
  ): Promise<{ events: Map<string, StoredEvent>; expired: PublicEventRef[] }> {
    const events = new Map<string, StoredEvent>();
    const missing: PublicEventRef[] = [];
    for (const ref of refs) {
      const event = this.recentEvents.get(ref.eventId);
      if (event) events.set(ref.eventId, event);
      else missing.push(ref);
    }
    if (missing.length === 0) return { events, expired: [] };
    const { rows } = await this.pool.query<EventRef & { seq: number }>({
      ...FIND_PLACES,
      values: [missing.map(({ accountId }) => accountId), missing.map(({ seq }) => seq)],
    });
    for (const event of await this.eventStore.readEvents(rows))
      events.set(toPublicEventId(event.id), event);
    const placed = new Set(rows.map(({ seq }) => seq));
    return { events, expired: missing.filter(({ seq }) => !placed.has(seq)) };
  }
}

/**
 * Gets the customer of an event: the body is sealed with their key, and their events remain in order. Events about nobody
 * remain in one order in the whole store.
 */
export function getEventCustomerId({ data: { customerId } }: StoredEvent): number {
  return typeof customerId === 'number' ? customerId : NOBODY;
}

function toBodyContext(eventId: string): string {
  return `webhook body ${eventId}`;
}

function toRedactedContext(eventId: string): string {
  return `webhook body ${eventId}, redacted`;
}
