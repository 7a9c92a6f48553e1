import { describe, expect, it } from '@jest/globals';
import { createOverdueCheck } from './overdue-check.js';

const MINUTE_MS = 60_000;

describe('a response', () => {
  it('is overdue when its client has taken nothing for 30 s', () => {
    const isOverdue = createOverdueCheck(0);
    expect(isOverdue({ now: 1_000, sent: 100, isWaiting: true })).toBe(false);
    expect(isOverdue({ now: 31_000, sent: 100, isWaiting: true })).toBe(false);
    expect(isOverdue({ now: 31_001, sent: 100, isWaiting: true })).toBe(true);
    expect(isOverdue({ now: 31_001, sent: 101, isWaiting: true })).toBe(false);
  });

  it('is not overdue while nothing waits for its client', () => {
    const isOverdue = createOverdueCheck(0);
    expect(isOverdue({ now: 10 * MINUTE_MS, sent: 0, isWaiting: false })).toBe(false);
  });

  it('is overdue after half an hour, however it goes on', () => {
    const isOverdue = createOverdueCheck(0);
    expect(isOverdue({ now: 30 * MINUTE_MS + 1, sent: 9, isWaiting: true })).toBe(true);
  });
});
