import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { RejectedError, type FieldErrors } from '#kernel/errors.js';
import { normalizeText } from '#kernel/text.js';

export const TOKEN_BYTES = 32;
/** Limits the active tokens of a user. */
export const MAX_TOKENS_PER_USER = 100;

const MAX_NAME = 255;
const CHECKSUM_BYTES = 12;

const TOKEN = /^(ink_[A-Za-z0-9_-]{43})([A-Za-z0-9_-]{16})$/;

/** @param key for the checksums of this database */
export function toToken(random: Buffer, key: Buffer): string {
  const body = `ink_${random.toString('base64url')}`;
  return `${body}${createChecksum(body, key).toString('base64url')}`;
}

/** Tells without a query whether a token was created here. */
export function hasValidChecksum(token: string, key: Buffer): boolean {
  const [, body, checksum] = TOKEN.exec(token) ?? [];
  if (body === undefined || checksum === undefined) return false;
  return timingSafeEqual(Buffer.from(checksum, 'base64url'), createChecksum(body, key));
}

/** @returns the name that it gets @throws RejectedError */
export function parseTokenName(
  { name, expiresAt }: { name: string; expiresAt: Date | null },
  now: Date,
): string {
  const normal = normalizeText(name);
  const errors: FieldErrors = {
    ...((normal === '' || [...normal].length > MAX_NAME || normal.includes('\0')) && {
      name: [`must have 1 to ${MAX_NAME} characters`],
    }),
    // The negation also refuses what is no time at all.
    ...(expiresAt && !(expiresAt > now) && { expires_at: ['must be in the future'] }),
  };
  if (Object.keys(errors).length > 0) throw new RejectedError(errors);
  return normal;
}

/**
 * Hashes a token. Only the hash is stored, so that nobody who reads the database can use a token, a session or a link.
 */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

function createChecksum(body: string, key: Buffer): Buffer {
  return createHmac('sha256', key).update(body).digest().subarray(0, CHECKSUM_BYTES);
}
