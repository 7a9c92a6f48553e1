import { describe, expect, it } from '@jest/globals';
import { RejectedError } from '#platform/kernel/errors.js';
import {
  hasValidChecksum,
  parseNewToken,
  toRestrictionsJson,
  toToken,
  UNRESTRICTED,
} from './token.js';

const KEY = Buffer.alloc(32, 1);
const RANDOM = Buffer.alloc(32, 2);

describe('a token', () => {
  it('has a checksum that is valid for its key only', () => {
    const token = toToken(RANDOM, KEY);
    expect(token).toMatch(/^ink_[A-Za-z0-9_-]{59}$/);
    expect(hasValidChecksum(token, KEY)).toBe(true);
    expect(hasValidChecksum(token, Buffer.alloc(32, 3))).toBe(false);
    expect(toToken(Buffer.alloc(32, 4), KEY)).not.toBe(token);
  });

  it('has no valid checksum once a character is changed, added or removed', () => {
    const token = toToken(RANDOM, KEY);
    const variants = Array.from(token, (letter, at) =>
      [...token].with(at, letter === 'A' ? 'B' : 'A').join(''),
    );
    const withoutChecksum = token.slice(0, -16);
    const shorter = [token.slice(1), token.slice(0, -1), withoutChecksum, '', 'x'];
    for (const text of [...variants, `${token}A`, ...shorter]) {
      expect([text, hasValidChecksum(text, KEY)]).toEqual([text, false]);
    }
  });

  it('needs a name, and an expiry in the future if it has one', () => {
    const now = new Date('2026-03-02T10:00:00Z');
    const parse = (name: string, end: string | null = null) => {
      const expiresAt = end === null ? null : new Date(end);
      return parseNewToken({ name, expiresAt, restrictions: UNRESTRICTED }, now).name;
    };
    expect(parse(' till ')).toBe('till');
    expect(parse('x'.repeat(255), '2026-03-02T10:00:01Z')).toHaveLength(255);
    for (const [name, end] of [
      [' ', null],
      ['x'.repeat(256), null],
      ['a\0b', null],
      ['till', '2026-03-02T10:00:00Z'],
      ['till', 'soon'],
    ] as const) {
      expect(() => parse(name, end)).toThrow(RejectedError);
    }
  });

  it('names each of its stores once, and 1 to 100 of them if it names any', () => {
    const parse = (accountIds: number[] | null) =>
      parseNewToken(
        { name: 'till', expiresAt: null, restrictions: { ...UNRESTRICTED, accountIds } },
        new Date(0),
      ).restrictions.accountIds;
    expect(parse(null)).toBeNull();
    expect(parse([10, 9, 10])).toEqual([9, 10]);
    const ids = Array.from({ length: 101 }, (_, i) => i + 1);
    expect(parse(ids.slice(1))).toHaveLength(100);
    for (const wrong of [[], ids]) expect(() => parse(wrong)).toThrow(/account_ids/);
  });

  it('renders only the restrictions that it has', () => {
    expect(toRestrictionsJson(UNRESTRICTED)).toEqual({});
    expect(toRestrictionsJson({ role: 'staff', accountIds: [7], isReadOnly: true })).toEqual({
      role: 'staff',
      account_ids: [7],
      read_only: true,
    });
  });
});
