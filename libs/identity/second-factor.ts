import { Secret, TOTP } from 'otpauth';
import { normalizeNumber } from '#platform/kernel/text.js';

export const TOTP_SECRET_BYTES = 20;
export const RECOVERY_CODE_COUNT = 10;
const RECOVERY_CODE_BYTES = 10;
/** Limits wrong codes since the last right one. A code of the app is right by chance once in 333,333 times. */
export const MAX_CODE_FAILURES = 50;
/** After so many, and at the maximum, the user gets an e-mail. */
export const NOTIFIED_CODE_FAILURES = 10;
/** Clocks may differ by one step. */
const WINDOW = 1;

/** The wrong codes that a user is notified of. @property failures since the last right code */
export type WrongCodes = {
  userId: number;
  name: string;
  email: string;
  failures: number;
  isLocked: boolean;
};

/** Creates codes by RFC 6238 as every authenticator app does: six digits, thirty seconds, SHA-1. */
function createTotp(secret: Buffer, email: string): TOTP {
  return new TOTP({
    issuer: 'Inkpad',
    label: email,
    secret: new Secret({ buffer: copyBuffer(secret) }),
  });
}

/** Creates the URI for the QR code that an app reads. */
export function createEnrolmentUri(secret: Buffer, email: string): string {
  return createTotp(secret, email).toString();
}

/** Renders the secret for typing it in, in groups of four. */
export function renderSecret(secret: Buffer): string {
  return groupCharacters(new Secret({ buffer: copyBuffer(secret) }).base32);
}

/**
 * @param lastStep the step of the last accepted code: a code is accepted once (RFC 6238, section 5.2)
 * @returns the step of a code that is right, to be stored
 */
export function findStepOfCode(
  secret: Buffer,
  code: string,
  lastStep: number,
  now: Date,
): number | undefined {
  const token = normalizeNumber(code).replaceAll(/\s/g, '');
  if (!/^\d{6}$/.test(token)) return undefined;
  const timestamp = now.getTime();
  const totp = createTotp(secret, '');
  const delta = totp.validate({ token, timestamp, window: WINDOW });
  if (delta === null) return undefined;
  const step = totp.counter({ timestamp }) + delta;
  return step > lastStep ? step : undefined;
}

/** @param random 10 bytes for each */
export function toRecoveryCodes(random: Buffer): string[] {
  return Array.from({ length: RECOVERY_CODE_COUNT }, (_, i) => {
    const bytes = random.subarray(i * RECOVERY_CODE_BYTES, (i + 1) * RECOVERY_CODE_BYTES);
    return groupCharacters(new Secret({ buffer: copyBuffer(bytes) }).base32.toLowerCase());
  });
}

export const RECOVERY_BYTES = RECOVERY_CODE_COUNT * RECOVERY_CODE_BYTES;

/** Parses a recovery code however it was typed. @returns undefined for what cannot be one */
export function parseRecoveryCode(text: string): string | undefined {
  const plain = normalizeNumber(text)
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '');
  return /^[a-z2-7]{16}$/.test(plain) ? plain : undefined;
}

function groupCharacters(text: string): string {
  return text.replaceAll(/(.{4})(?=.)/g, '$1 ');
}

/** Copies the bytes into an ArrayBuffer of their own: a Buffer may share one with others. */
function copyBuffer(bytes: Buffer): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}
