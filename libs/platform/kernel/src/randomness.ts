import { randomFillSync } from 'node:crypto';
import { v7 as uuid } from 'uuid';
import { getNowMs } from './clock.js';

const pool = Buffer.alloc(16 * 1024);
let used = pool.length;

/** Returns random bytes from a buffer: one call to the generator costs as much for many bytes as for a few. */
export function getRandomBytes(bytes: number): Buffer {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return Buffer.from(pool.subarray(used, (used += bytes)));
}

/** Creates a UUIDv7: consecutive ids are adjacent in an index. */
export function createId(): string {
  return uuid({ random: getRandomBytes(16), msecs: getNowMs() });
}
