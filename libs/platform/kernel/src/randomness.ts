import { randomFillSync } from 'node:crypto';
import { v7 as uuid } from 'uuid';

const pool = Buffer.alloc(16 * 1024);
let used = pool.length;

/** Takes random bytes from a buffer: a call to the generator for a few costs as much as one for many. */
export function getRandomBytes(bytes: number): Buffer {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return Buffer.from(pool.subarray(used, (used += bytes)));
}

/** UUIDv7: ids made one after the other lie side by side in an index. */
export function createId(): string {
  return uuid({ random: getRandomBytes(16) });
}
