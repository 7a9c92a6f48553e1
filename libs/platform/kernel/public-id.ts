const PREFIX = 'evt_';
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Pattern of a public event id, for schemas. */
export const PUBLIC_ID_PATTERN = `^${PREFIX}[0-7][${CROCKFORD}]{25}$`;

/** All pairs of characters; one pair encodes ten bits. */
const PAIRS = Array.from(
  { length: 1024 },
  (_, bits) => CROCKFORD.charAt(bits >> 5) + CROCKFORD.charAt(bits & 31),
);

/** Renders a stored event's id as `evt_` and 26 characters of Crockford base 32. */
export function toPublicEventId(uuid: string): string {
  const hex = uuid.replaceAll('-', '');
  // 8 of the 128 bits, then 20 at a time, which numbers can hold: with a BigInt this takes three times as long.
  let text = `${PREFIX}${PAIRS[parseInt(hex.slice(0, 2), 16)]}`;
  for (let at = 2; at < 32; at += 5) {
    const bits = parseInt(hex.slice(at, at + 5), 16);
    text += `${PAIRS[bits >> 10]}${PAIRS[bits & 1023]}`;
  }
  if (text.length !== PREFIX.length + 26) throw new TypeError('not a UUID');
  return text;
}

const PUBLIC_ID = new RegExp(PUBLIC_ID_PATTERN);

/** Parses a public event id. Undefined: no event has such an id. */
export function parsePublicEventId(publicId: string): string | undefined {
  if (!PUBLIC_ID.test(publicId)) return undefined;
  let bits = 0n;
  for (const character of publicId.slice(PREFIX.length))
    bits = (bits << 5n) | BigInt(CROCKFORD.indexOf(character));
  const hex = bits.toString(16).padStart(32, '0');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** Reads the time at which a UUIDv7 was made (RFC 9562, section 5.7). */
export function readIdTime(uuid: string): Date {
  return new Date(parseInt(uuid.replaceAll('-', '').slice(0, 12), 16));
}
