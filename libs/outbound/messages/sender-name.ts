/** What nobody sees, or what turns the direction of text around. */
const UNSEEN = /[\p{Cc}\p{Cf}]/gu;
const MAX_CHARACTERS = 70;
/** An at sign as it is typed, escaped, or written so that readers know what it means. */
const AT_SIGN = /@|&#0*64;|&#x0*40;|&commat;|%40|=40|\\u0040|[([{<]\s?at\s?[)\]}>]/i;
/** The beginning of an encoded word, which mail programs decode (RFC 2047, section 2). */
const ENCODED_WORD = /=\?/g;

/** Renders a text for a header, so that mail programs decode nothing that somebody has typed as an encoded word. */
export function renderHeaderText(text: string): string {
  return text.replaceAll(ENCODED_WORD, '= ?');
}

/**
 * Returns the name of a store as that of a sender. Many mail programs show it alone, so it must not look like an address:
 * words with an at sign, in whatever form, and encoded words, which may hold one, are left out. A domain may stand in it, since
 * many shops are called by theirs.
 * @returns undefined when nothing is left of it
 */
export function renderSenderName(store: string): string | undefined {
  const words = store
    .replaceAll(/\s/gu, ' ')
    .replaceAll(UNSEEN, '')
    .replaceAll(/([([{<]) at ([)\]}>])/gi, '$1at$2')
    .split(' ')
    .filter((word) => word !== '' && !isUnsafe(word.normalize('NFKC')));
  const name = [...words.join(' ')].slice(0, MAX_CHARACTERS).join('').trim();
  return /[\p{L}\p{N}]/u.test(name) ? name : undefined;
}

function isUnsafe(word: string): boolean {
  return AT_SIGN.test(word) || word.includes('=?') || word.includes('?=');
}
