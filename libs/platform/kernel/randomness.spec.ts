import { describe, expect, it } from '@jest/globals';
import { validate, version } from 'uuid';
import { getNowMs } from './clock.js';
import { readIdTime } from './public-id.js';
import { createId } from './randomness.js';

describe('createId', () => {
  it('creates UUIDs of version 7 that all differ and begin with the time', () => {
    const before = getNowMs();
    // More than the random bytes last for.
    const ids = Array.from({ length: 3_000 }, createId);
    expect(ids.filter((id) => !validate(id) || version(id) !== 7)).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
    for (const time of ids.map((id) => readIdTime(id).getTime())) {
      expect(time).toBeGreaterThanOrEqual(before);
      expect(time).toBeLessThanOrEqual(getNowMs());
    }
  });
});
