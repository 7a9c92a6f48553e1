import { describe, expect, it } from '@jest/globals';
import { UploadPace } from './upload-pace.js';

const MIB = 1024 * 1024;

/** Plays a body that arrives as `getReceived` says, looked at twice a second. @returns the verdict, and when */
function play(bytes: number, getReceived: (seconds: number) => number) {
  const pace = new UploadPace(bytes, 0);
  for (let ms = 500; ms <= 60_000; ms += 500) {
    const received = Math.min(bytes, getReceived(ms / 1000));
    if (received === bytes) return 'arrived';
    const verdict = pace.judge(ms, received);
    if (verdict) return `${verdict} after ${ms / 1000} s`;
  }
  return 'kept';
}

describe('UploadPace', () => {
  it.each([
    ['nothing at all', 20 * MIB, () => 0, 'stalled after 5 s'],
    ['one byte and no more', 2 * MIB, () => 1, 'slow after 5 s'],
    ['a byte a second', 20 * MIB, (s: number) => s, 'slow after 5 s'],
    ['10 KB a second of a large file', 20 * MIB, (s: number) => s * 10_000, 'slow after 5 s'],
    [
      'a good start, and then nothing',
      20 * MIB,
      (s: number) => Math.min(s, 10) * MIB,
      'stalled after 15 s',
    ],
    [
      'a good start, and then a byte a second',
      20 * MIB,
      (s: number) => Math.min(s, 10) * MIB + s,
      'slow after 15 s',
    ],
  ])('refuses %s', (_name, bytes, getReceived, verdict) => {
    expect(play(bytes, getReceived)).toBe(verdict);
  });

  it.each([
    ['a picture of 2 MiB at 60 KB a second', 2 * MIB, (s: number) => s * 60_000],
    ['a small file at 4 KB a second', 200_000, (s: number) => s * 4_000],
    ['a file of 5 MiB at 100 KB a second', 5 * MIB, (s: number) => s * 100_000],
    [
      'a line that rests for four seconds again and again',
      5 * MIB,
      (s: number) => Math.ceil(s / 4) * 700_000,
    ],
  ])('waits for %s', (_name, bytes, getReceived) => {
    expect(play(bytes, getReceived)).toBe('arrived');
  });
});
