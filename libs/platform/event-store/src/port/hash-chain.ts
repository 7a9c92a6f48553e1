import { hash } from 'node:crypto';
import { toCanonicalJson } from './canonical-json.js';
import type { Head, NewEvent } from './event-store.js';

/**
 * Hashes the previous hash and the event as canonical JSON (RFC 8785) with SHA-256, so that the result does not depend
 * on how an engine formats JSON. The first event of a stream is chained to the stream's name.
 */
export function hashEvent(stream: string, before: Head | null, event: NewEvent): string {
  const json = toCanonicalJson({
    stream,
    revision: before === null ? 0 : before.revision + 1,
    id: event.id,
    type: event.type,
    version: event.version,
    data: event.data,
    meta: event.meta,
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
