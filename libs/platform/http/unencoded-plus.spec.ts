import { describe, expect, it } from '@jest/globals';
import { restoreOffsets } from './unencoded-plus.js';

describe('restoreOffsets', () => {
  it.each([
    ['2026-03-01T10:00:00 02:00', '2026-03-01T10:00:00+02:00'],
    ['2026-03-01T10:00:00.123 0200', '2026-03-01T10:00:00.123+0200'],
    ['2026-03-01T10:00 02', '2026-03-01T10:00+02'],
  ])('reads %j as %j', (sent, time) => {
    expect(restoreOffsets({ from: sent, search: 'a b' })).toEqual({ from: time, search: 'a b' });
  });

  it.each(['2026-03-01 10:00', '2026-03-01T10:00:00Z', '2026-03-01T10:00:00-02:00', 'a 02:00', ' 49', 7])(
    'leaves %j as it is',
    (sent) => {
      expect(restoreOffsets({ from: sent })).toEqual({ from: sent });
    },
  ); // prettier-ignore
});
