import { describe, expect, it } from '@jest/globals';
import { formatFollowCursor, parseFollowCursor, type FollowCursor } from './follow-cursor.js';

describe('cursors of followed entries', () => {
  it.each<FollowCursor>([
    { kind: 'audit', tx: '18446744073709551615', id: 57 },
    { kind: 'history', seq: 0, eventId: '0198f3c4-7c2e-7d3a-9b1f-2f6f0a4b8c55' },
  ])('are parsed as they were formatted: $kind', (cursor) => {
    expect(parseFollowCursor(formatFollowCursor(cursor))).toEqual(cursor);
  });

  it.each(['', 'audit~1', 'audit~-1~2', 'history~1~2', 'audit_57', 'audit~1~2~3'])(
    'are not parsed from %p',
    (text) => {
      expect(parseFollowCursor(text)).toBeUndefined();
    },
  );
});
