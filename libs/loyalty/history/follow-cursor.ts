export const FOLLOWED_KINDS = ['audit', 'history'] as const;

export type FollowedKind = (typeof FOLLOWED_KINDS)[number];

/**
 * Says which entry was the last. It names the entry twice, by its place and by itself, so that a place which another server
 * has given to another entry is noticed.
 */
export type FollowCursor =
  | { kind: 'audit'; tx: string; id: number }
  | { kind: 'history'; seq: number; eventId: string };

const AUDIT = /^audit~(\d{1,20})~(\d{1,15})$/;
const HISTORY =
  /^history~(\d{1,15})~([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/;

export function formatFollowCursor(cursor: FollowCursor): string {
  return cursor.kind === 'audit'
    ? `audit~${cursor.tx}~${cursor.id}`
    : `history~${cursor.seq}~${cursor.eventId}`;
}

/** Parses a cursor; undefined for a text that is none. */
export function parseFollowCursor(text: string): FollowCursor | undefined {
  const [, tx, id] = AUDIT.exec(text) ?? [];
  if (tx !== undefined && id !== undefined) return { kind: 'audit', tx, id: Number(id) };
  const [, seq, eventId] = HISTORY.exec(text) ?? [];
  if (seq !== undefined && eventId !== undefined) {
    return { kind: 'history', seq: Number(seq), eventId };
  }
  return undefined;
}
