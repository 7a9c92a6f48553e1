import { Pace } from '#platform/kernel/pace.js';

export const SEPARATORS = [',', ';', '\t'] as const;
export type Separator = (typeof SEPARATORS)[number];

const MARKS: [string, number[]][] = [
  ['utf-8', [0xef, 0xbb, 0xbf]],
  ['utf-16le', [0xff, 0xfe]],
  ['utf-16be', [0xfe, 0xff]],
];
/** Of a file without a mark: enough to see which bytes are zero. */
const SAMPLE_BYTES = 4_096;
/** Decoded at once. */
const CHUNK_BYTES = 64 * 1024;
/** What a decoder puts in the place of bytes that are not of its encoding. */
export const REPLACEMENT = '\uFFFD';

/**
 * A text file, decoded as it is read, since its text may take twice as much memory as its bytes.
 * @property encoding its name in the Encoding Standard, in lower case
 * @property damagedAt where in the text the first bytes are that are not of the encoding; null: nowhere
 * @property readParts reads the text from its beginning
 */
export type DecodedText = {
  encoding: string;
  damagedAt: number | null;
  readParts: () => Iterable<string>;
};

/** Finds an encoding by one of its labels (Encoding Standard, section 4.2). */
export function findEncoding(label: string): string | undefined {
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return undefined;
  }
}

/**
 * Decodes a text file in the encoding that its media type declares (RFC 7111, section 5.1). Without one it is that of the
 * byte order mark, UTF-16 if every other byte is zero, UTF-8 if it is that, and else Windows-1252, which spreadsheets
 * write in Western Europe and America. UTF-8 with a few wrong bytes is damaged, not another encoding.
 * @param declared null: nothing
 * @returns undefined when the mark is one of another encoding
 */
export async function decodeText(
  bytes: Uint8Array,
  declared: string | null,
): Promise<DecodedText | undefined> {
  const marked = MARKS.find(([, mark]) => mark.every((byte, i) => bytes[i] === byte))?.[0];
  if (marked !== undefined && declared !== null && !canHaveMark(declared, marked)) return undefined;
  const encoding = marked ?? declared ?? findWideEncoding(bytes);
  if (encoding !== undefined) return decode(bytes, encoding);
  const decoded = await decode(bytes, 'utf-8');
  if (decoded.damagedAt === null || (await isMostlyMultiByte(decoded))) return decoded;
  return decode(bytes, 'windows-1252');
}

/** Tells whether a file in this encoding may begin with the mark, which says more of UTF-16 than its name. */
function canHaveMark(encoding: string, marked: string): boolean {
  return encoding === marked || (encoding.startsWith('utf-16') && marked.startsWith('utf-16'));
}

/** Checks the whole file, and finds the damage when some of it is not of the encoding. */
async function decode(bytes: Uint8Array, encoding: string): Promise<DecodedText> {
  const readParts = () => decodeParts(bytes, encoding, false);
  return { encoding, damagedAt: await findDamage(bytes, encoding), readParts };
}

async function findDamage(bytes: Uint8Array, encoding: string): Promise<number | null> {
  if (encoding === 'windows-1252') return null;
  const pace = new Pace();
  const strict = decodeParts(bytes, encoding, true);
  try {
    while (!strict.next().done) if (pace.isDue()) await pace.giveWay();
    return null;
  } catch {
    let length = 0;
    for (const part of decodeParts(bytes, encoding, false)) {
      const at = part.indexOf(REPLACEMENT);
      if (at >= 0) return length + at;
      length += part.length;
      if (pace.isDue()) await pace.giveWay();
    }
    return 0;
  }
}

/** @param isStrict whether bytes that are not of the encoding throw */
function* decodeParts(bytes: Uint8Array, encoding: string, isStrict: boolean): Generator<string> {
  const decoder = new TextDecoder(encoding, { fatal: isStrict });
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    const end = at + CHUNK_BYTES;
    const part = bytes.subarray(at, end);
    yield encoding === 'windows-1252'
      ? decodeWindows1252(part)
      : decoder.decode(part, { stream: end < bytes.length });
  }
}

/** What Windows-1252 has from 0x80 to 0x9f, where Latin-1 has control characters. */
const WINDOWS_1252 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

/** Decodes Windows-1252. The TextDecoder of Node.js 20 would decode it as Latin-1. */
function decodeWindows1252(bytes: Uint8Array): string {
  const latin1 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
  return latin1.replace(/[\x80-\x9f]/g, (control) =>
    WINDOWS_1252.charAt(control.charCodeAt(0) - 0x80),
  );
}

/**
 * Tells whether at least half of what is not ASCII was read as UTF-8. Letters of other encodings are hardly ever that by
 * accident.
 */
async function isMostlyMultiByte({ readParts }: DecodedText): Promise<boolean> {
  const pace = new Pace();
  let difference = 0;
  for (const part of readParts()) {
    const replaced = part.split(REPLACEMENT).length - 1;
    difference += part.replaceAll(/[\0-\x7f\uFFFD]/g, '').length - replaced;
    if (pace.isDue()) await pace.giveWay();
  }
  return difference >= 0;
}

/** Finds UTF-16 without a mark: of its Latin letters, every other byte is zero. */
function findWideEncoding(bytes: Uint8Array): string | undefined {
  const sample = bytes.subarray(0, SAMPLE_BYTES);
  const zeros = [0, 0];
  for (const [i, byte] of sample.entries()) if (byte === 0) zeros[i % 2] = (zeros[i % 2] ?? 0) + 1;
  const [even = 0, odd = 0] = zeros;
  if (sample.length === 0 || Math.max(even, odd) < sample.length / 4) return undefined;
  return odd > even ? 'utf-16le' : 'utf-16be';
}

const SEPARATOR_LINE = /^"?sep=([,;\t])"?(?:\r\n|\n|\r)/i;
/** Of the header, in which the separators are counted. */
export const MAX_COUNTED = 64 * 1024;

/**
 * Finds the separator of a CSV file: the one that its header has most of, outside of quotes.
 * @returns also the place where the table begins
 */
export function findSeparator(text: string): { separator: Separator; start: number } {
  const named = SEPARATOR_LINE.exec(text);
  if (named) return { separator: named[1] as Separator, start: named[0].length };
  const counts = { ',': 0, ';': 0, '\t': 0 };
  let isQuoted = false;
  let isCellStart = true;
  for (const character of text.slice(0, MAX_COUNTED)) {
    if (isQuoted) isQuoted = character !== '"';
    else if (character === '\n' || character === '\r') break;
    else if (character === '"') {
      // The second one of two in a row goes on with the quoted cell.
      isQuoted = isCellStart;
    } else {
      const isSeparator = Object.hasOwn(counts, character);
      if (isSeparator) counts[character as Separator]++;
      isCellStart = isSeparator || (isCellStart && character === ' ');
    }
  }
  const [separator = ','] = SEPARATORS.toSorted((a, b) => counts[b] - counts[a]);
  return { separator, start: 0 };
}
