import { describe, expect, it } from '@jest/globals';
import { copyToKeep, countKeptBytes, encodeToKeep } from './kept-bytes.js';

const SLAB = Buffer.from('one of many').buffer.byteLength;

describe('copyToKeep', () => {
  it.each([
    ['a text', Buffer.from('packed')],
    ['bytes that the database driver read from hexadecimal digits', Buffer.from('00ff10', 'hex')],
    ['several buffers joined in one', Buffer.concat([Buffer.from('a'), Buffer.from('b')])],
    ['a part of another buffer', Buffer.alloc(100_000, 'x').subarray(10, 20)],
    ['an empty buffer', Buffer.from('')],
  ])('copies %s out of shared memory', (_of, shared) => {
    const copy = copyToKeep(shared);
    expect(copy.equals(shared)).toBe(true);
    expect(copy.buffer.byteLength).toBe(shared.length);
  });

  it('does not copy a buffer that has memory of its own', () => {
    const own = Buffer.allocUnsafeSlow(10).fill(1);
    expect(copyToKeep(own)).toBe(own);
  });
});

describe('encodeToKeep', () => {
  it.each(['', 'Kaffee', 'Käse für Željko 🧀'])('encodes %j into memory of its own', (text) => {
    const bytes = encodeToKeep(text);
    expect(bytes.toString()).toBe(text);
    expect(bytes.buffer.byteLength).toBe(Buffer.byteLength(text));
  });
});

describe('countKeptBytes', () => {
  it('counts the whole slab of a view', () => {
    const text = 'a body of 20 bytes..';
    expect(countKeptBytes(Buffer.from(text))).toBeGreaterThanOrEqual(SLAB);
    expect(countKeptBytes(encodeToKeep(text))).toBe(220);
    expect(countKeptBytes(encodeToKeep(''))).toBeGreaterThan(0);
  });
});
