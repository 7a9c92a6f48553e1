import { describe, expect, it } from '@jest/globals';
import { findNextMailAttempt } from './mail.js';

const HOUR = 3_600_000;
const CREATED = new Date('2026-03-01T10:00:00Z');

const after = (milliseconds: number) => new Date(CREATED.getTime() + milliseconds);

describe('a mail that could not be sent', () => {
  it.each([
    [1, 5],
    [2, 30],
    [3, 120],
    [4, 600],
    [5, 1800],
    [6, 3600],
    [20, 3600],
  ])('waits after attempt %i for %i seconds', (attempts, seconds) => {
    const now = after(HOUR);
    expect(findNextMailAttempt(attempts, CREATED, now)).toEqual(after(HOUR + seconds * 1000));
  });

  it.each([
    [23 * HOUR, after(24 * HOUR)],
    [23 * HOUR + 1, undefined],
    [30 * HOUR, undefined],
  ])('is tried again, when it is %i ms old, at %s', (age, next) => {
    expect(findNextMailAttempt(9, CREATED, after(age))).toEqual(next);
  });

  it('is tried again until a later end that is passed in', () => {
    const findNext = (age: number) => findNextMailAttempt(9, CREATED, after(age), after(72 * HOUR));
    expect([findNext(71 * HOUR), findNext(71 * HOUR + 1)]).toEqual([after(72 * HOUR), undefined]);
  });
});
