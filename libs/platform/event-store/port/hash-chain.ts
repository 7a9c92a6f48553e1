import { hash } from 'node:crypto';
import { toCanonicalJson } from './canonical-json.js';
import type { Head, NewEvent } from './event-store.js';

/**
 * Hashes the previous hash and the event as canonical JSON (RFC 8785) with SHA-256, so that the result does not depend
 * on how an engine formats JSON. The first event of a stream is chained to the stream's name.
 */
export function hashEvent(stream: string, before: Head | null, event: NewEvent): string {
  const json = toCanonicalJson({
    data: event.data,
    id: event.id,
    meta: event.meta,
    revision: before === null ? 0 : before.revision + 1,
    stream,
    type: event.type,
    version: event.version,
  });
  return hash('sha256', (before === null ? stream : before.hash) + json);
}

/** Returns the head after each event, in order. */
export function hashChain(stream: string, before: Head | null, events: NewEvent[]): Head[] {
  const heads: Head[] = [];
  let head = before;
  for (const event of events) {
    head = {
      revision: head === null ? 0 : head.revision + 1,
      hash: hashEvent(stream, head, event),
    };
    heads.push(head);
  }
  return heads;
}
