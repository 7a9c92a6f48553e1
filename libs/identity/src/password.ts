import { hasHiddenCharacter, normalizePassword } from '#kernel/text.js';

export const SHORTEST_PASSWORD = 10;
const LONGEST_PASSWORD = 1000;

/**
 * Length counts, not the kinds of characters (NIST SP 800-63B, section 5.1.1.2).
 * @returns why a new password is not taken
 */
export function passwordFault(
  given: string,
  { email, name }: { email: string; name: string },
): string | undefined {
  const password = normalizePassword(given);
  // RFC 8264, section 9: keyboards do not type them, so whoever pasted one could not sign in elsewhere.
  if (hasHiddenCharacter(password)) return 'must not contain control or invisible characters';
  const { length } = [...password];
  if (length < SHORTEST_PASSWORD) {
    return `must have at least ${SHORTEST_PASSWORD} characters`;
  }
  if (length > LONGEST_PASSWORD) return `must have at most ${LONGEST_PASSWORD} characters`;
  const plain = password.toLowerCase();
  const [mailbox = ''] = email.toLowerCase().split('@');
  const guessed = [email.toLowerCase(), mailbox.repeat(2), name.toLowerCase()];
  if (guessed.includes(plain) || new Set(plain).size < 4) return 'is too easy to guess';
  return undefined;
}
