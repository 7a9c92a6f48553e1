import { createHash } from 'node:crypto';
import { isEmailAddress, normalizeEmailAddress } from '#kernel/email-address.js';
import { RejectedError, type FieldErrors } from '#kernel/errors.js';

export const INVITATION_BYTES = 32;
export const INVITATION_DAYS = 7;
/** Limits the open invitations of a store. */
export const MAX_INVITATIONS = 50;

const MAX_NAME = 255;
const SECRET = /^[A-Za-z0-9_-]{43}$/;

/** @returns the address as it is stored @throws RejectedError */
export function parseInvitedAddress(input: string): string {
  const email = normalizeEmailAddress(input);
  if (isEmailAddress(email)) return email;
  throw new RejectedError({ email: ['must be a whole address, such as name@shop.example'] });
}

/** Asserts that name and password can be used. @throws RejectedError */
export function assertValidNewcomer(name: string, passwordError: string | undefined): void {
  const errors: FieldErrors = {
    ...((name === '' || [...name].length > MAX_NAME) && {
      name: [`must have 1 to ${MAX_NAME} characters`],
    }),
    ...(passwordError !== undefined && { password: [passwordError] }),
  };
  if (Object.keys(errors).length > 0) throw new RejectedError(errors);
}

/** Hashes the secret of a link: only the hash is stored. @returns undefined for what cannot be the secret of a link */
export function hashInvitationSecret(secret: string): Buffer | undefined {
  return SECRET.test(secret) ? createHash('sha256').update(secret).digest() : undefined;
}
