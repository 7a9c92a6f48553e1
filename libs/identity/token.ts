import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { RejectedError } from '#platform/kernel/errors.js';
import { normalizeText } from '#platform/kernel/text.js';
import type { Role } from './roles.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues } from '#platform/kernel/issues.js';

export const TOKEN_BYTES = 32;
/** Limits the tokens of a user that are in force: neither revoked nor expired. */
export const MAX_TOKENS_PER_USER = 100;

/** Limits the stores that a token can name. */
export const MAX_ACCOUNTS = 100;
const MAX_NAME = 255;
const CHECKSUM_BYTES = 12;

/** Begins a token, so that whoever finds one knows what it opens. */
type TokenPrefix = 'ink_' | 'inkadm_';

const SECRET = /^([A-Za-z0-9_-]{43})([A-Za-z0-9_-]{16})$/;

/**
 * Says what a token has less than its user. It never changes.
 * @property role the token has this role where its user's own has more rights; null: the user's own
 * @property accountIds the only stores that it may access; null: all of its user, also those joined later
 */
export type TokenRestrictions = {
  role: Role | null;
  accountIds: readonly number[] | null;
  isReadOnly: boolean;
};

export const UNRESTRICTED: TokenRestrictions = { role: null, accountIds: null, isReadOnly: false };

type NewToken = { name: string; expiresAt: Date | null; restrictions: TokenRestrictions };

/** @param key for the checksums of this database */
export function toToken(random: Buffer, key: Buffer, prefix: TokenPrefix = 'ink_'): string {
  const body = `${prefix}${random.toString('base64url')}`;
  return `${body}${createChecksum(body, key).toString('base64url')}`;
}

/** Tells without a query whether a token was created here. */
export function hasValidChecksum(
  token: string,
  key: Buffer,
  prefix: TokenPrefix = 'ink_',
): boolean {
  if (!token.startsWith(prefix)) return false;
  const [, secret, checksum] = SECRET.exec(token.slice(prefix.length)) ?? [];
  if (secret === undefined || checksum === undefined) return false;
  const expected = createChecksum(`${prefix}${secret}`, key);
  return timingSafeEqual(Buffer.from(checksum, 'base64url'), expected);
}

/** Parses a new token. @returns it with the name and the stores that it gets @throws RejectedError */
export function parseNewToken(
  { name, expiresAt, restrictions }: NewToken,
  now: Date,
): Pick<NewToken, 'name' | 'restrictions'> {
  const normal = normalizeText(name);
  const accountIds =
    restrictions.accountIds && [...new Set(restrictions.accountIds)].sort((a, b) => a - b);
  const errors: FieldIssues = {
    ...((normal === '' || [...normal].length > MAX_NAME || normal.includes('\0')) && {
      name: [ISSUES.name_length({ max: MAX_NAME })],
    }),
    // The negation also refuses what is no time at all.
    ...(expiresAt && !(expiresAt > now) && { expires_at: [ISSUES.not_future] }),
    ...(accountIds &&
      (accountIds.length === 0 || accountIds.length > MAX_ACCOUNTS) && {
        account_ids: [ISSUES.store_count({ max: MAX_ACCOUNTS })],
      }),
  };
  if (Object.keys(errors).length > 0) throw new RejectedError(errors);
  return { name: normal, restrictions: { ...restrictions, accountIds } };
}

/** Renders the restrictions for the audit log; of an unrestricted token nothing. */
export function toRestrictionsJson({ role, accountIds, isReadOnly }: TokenRestrictions): object {
  return {
    ...(role !== null && { role }),
    ...(accountIds !== null && { account_ids: accountIds }),
    ...(isReadOnly && { read_only: true }),
  };
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
