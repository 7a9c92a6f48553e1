import { randomBytes, randomFillSync } from 'node:crypto';
import { getNowMs } from './clock.js';

const ID_BYTES = 16;
const SECRET_BYTES = 32;
/** Random bytes for many ids: one call to the generator costs as much for many bytes as for a few. */
const pool = Buffer.alloc(1024 * ID_BYTES);
let used = pool.length;

/** Creates a secret that nobody guesses, such as the token of a session or a link. */
export function createSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}

/** Creates a UUIDv7 (RFC 9562, section 5.7): consecutive ids are adjacent in an index. */
export function createId(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const at = used;
  used += ID_BYTES;
  pool.writeUIntBE(getNowMs(), at, 6);
  pool[at + 6] = 0x70 | ((pool[at + 6] ?? 0) & 0x0f);
  pool[at + 8] = 0x80 | ((pool[at + 8] ?? 0) & 0x3f);
  const hex = pool.toString('hex', at, at + ID_BYTES);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
