const PREFIX = 'evt_';
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** The form of a public event id, for schemas. */
export const PUBLIC_ID_PATTERN = `^${PREFIX}[0-7][${CROCKFORD}]{25}$`;

/** `evt_` and 26 characters of Crockford base 32, always the same for the same stored event. */
export function publicEventId(uuid: string): string {
  let rest = BigInt(`0x${uuid.replaceAll('-', '')}`);
  let text = '';
  for (let i = 0; i < 26; i++) {
    text = CROCKFORD.charAt(Number(rest & 31n)) + text;
    rest >>= 5n;
  }
  return PREFIX + text;
}

const PUBLIC_ID = new RegExp(PUBLIC_ID_PATTERN);

/** The way back, exactly as it is shown. Undefined: no event has such an id. */
export function eventIdOf(publicId: string): string | undefined {
  if (!PUBLIC_ID.test(publicId)) return undefined;
  let bits = 0n;
  for (const character of publicId.slice(PREFIX.length))
    bits = (bits << 5n) | BigInt(CROCKFORD.indexOf(character));
  const hex = bits.toString(16).padStart(32, '0');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
