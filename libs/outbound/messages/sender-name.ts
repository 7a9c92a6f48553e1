/** What nobody sees, or what turns the direction of text around. */
const UNSEEN = /[\p{Cc}\p{Cf}]/gu;
const MAX_CHARACTERS = 70;

/**
 * Returns the name of a store as that of a sender. Many mail programs show it alone, so it must not look like an address:
 * words with an at sign, of whatever width, are left out.
 * @returns undefined when nothing is left of it
 */
export function renderSenderName(store: string): string | undefined {
  const words = store
    .replaceAll(/\s/gu, ' ')
    .replaceAll(UNSEEN, '')
    .split(' ')
    .filter((word) => word !== '' && !word.normalize('NFKC').includes('@'));
  const name = [...words.join(' ')].slice(0, MAX_CHARACTERS).join('').trim();
  return /[\p{L}\p{N}]/u.test(name) ? name : undefined;
}
