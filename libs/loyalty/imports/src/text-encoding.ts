export const ENCODINGS = ['utf-8', 'utf-16le', 'utf-16be', 'windows-1252'] as const;
export type Encoding = (typeof ENCODINGS)[number];

export const SEPARATORS = [',', ';', '\t'] as const;
export type Separator = (typeof SEPARATORS)[number];

const MARKS: [Encoding, number[]][] = [
  ['utf-8', [0xef, 0xbb, 0xbf]],
  ['utf-16le', [0xff, 0xfe]],
  ['utf-16be', [0xfe, 0xff]],
];
/** Of a file without a mark: enough to see which bytes are zero. */
const SAMPLE_BYTES = 4_096;

/**
 * Decodes a text file: by its byte order mark, else as UTF-16 if every other byte is zero, as UTF-8 if it is that, and
 * else as Windows-1252, which spreadsheets write in Western Europe and America.
 * @returns undefined when its mark says one encoding and its bytes are not of it
 */
export function decodeText(bytes: Uint8Array): { text: string; encoding: Encoding } | undefined {
  const marked = MARKS.find(([, mark]) => mark.every((byte, i) => bytes[i] === byte))?.[0];
  const encoding = marked ?? findWideEncoding(bytes);
  if (encoding !== undefined) {
    const text = decode(bytes, encoding);
    return text === undefined ? undefined : { text, encoding };
  }
  const text = decode(bytes, 'utf-8');
  if (text !== undefined) return { text, encoding: 'utf-8' };
  return { text: decodeWindows1252(bytes), encoding: 'windows-1252' };
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

function decode(bytes: Uint8Array, encoding: Encoding): string | undefined {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Finds UTF-16 without a mark: of its Latin letters, every other byte is zero. */
function findWideEncoding(bytes: Uint8Array): Encoding | undefined {
  const sample = bytes.subarray(0, SAMPLE_BYTES);
  const zeros = [0, 0];
  for (const [i, byte] of sample.entries()) if (byte === 0) zeros[i % 2] = (zeros[i % 2] ?? 0) + 1;
  const [even = 0, odd = 0] = zeros;
  if (sample.length === 0 || Math.max(even, odd) < sample.length / 4) return undefined;
  return odd > even ? 'utf-16le' : 'utf-16be';
}

const SEPARATOR_LINE = /^sep=([,;\t])\r?\n/i;

/** Finds the separator of a CSV file: the one that its header has most of, outside of quotes. */
export function findSeparator(text: string): { separator: Separator; rest: string } {
  const named = SEPARATOR_LINE.exec(text);
  if (named) return { separator: named[1] as Separator, rest: text.slice(named[0].length) };
  const header = /^(?:"(?:[^"]|"")*"|[^"\r\n])*/.exec(text)?.[0] ?? '';
  const plain = header.replaceAll(/"(?:[^"]|"")*"/g, '');
  const counts = SEPARATORS.map((separator) => plain.split(separator).length);
  const separator = SEPARATORS[counts.indexOf(Math.max(...counts))] ?? ',';
  return { separator, rest: text };
}
