import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hash,
  sign,
  verify,
  type KeyObject,
} from 'node:crypto';

/** C2SP signed-note: the type of Ed25519 keys. */
const ED25519 = 1;
const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
const ID_BYTES = 4;
/** Bytes that precede the key in the DER forms of RFC 8410. */
const PRIVATE_DER = Buffer.from('302e020100300506032b657004220420', 'hex');
const PUBLIC_DER = Buffer.from('302a300506032b6570032100', 'hex');
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Identifies a signer: its name is in the signature line and is the origin of the checkpoints. */
export type Verifier = { name: string; id: Buffer; key: KeyObject };
export type Signer = Verifier & { secret: KeyObject };

/**
 * Parses a signer key.
 * @returns undefined unless it is `PRIVATE+KEY+<name>+<id>+<base64>`, as Go's note package writes it
 */
export function parseSigner(text: string): Signer | undefined {
  const [, rest] = /^PRIVATE\+KEY\+(.+)$/.exec(text.trim()) ?? [];
  const parts = rest === undefined ? undefined : parseKey(rest);
  if (!parts) return undefined;
  const secret = createPrivateKey({
    key: Buffer.concat([PRIVATE_DER, parts.key]),
    format: 'der',
    type: 'pkcs8',
  });
  const verifier = createVerifier(parts.name, createPublicKey(secret));
  return verifier.id.equals(parts.id) ? { ...verifier, secret } : undefined;
}

/**
 * Parses a verifier key.
 * @returns undefined unless it is `<name>+<id>+<base64>`
 */
export function parseVerifier(text: string): Verifier | undefined {
  const parts = parseKey(text.trim());
  if (!parts) return undefined;
  const key = createPublicKey({
    key: Buffer.concat([PUBLIC_DER, parts.key]),
    format: 'der',
    type: 'spki',
  });
  const verifier = createVerifier(parts.name, key);
  return verifier.id.equals(parts.id) ? verifier : undefined;
}

/** @param name see `isKeyName` */
export function createSignerKey(name: string): string {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const { id } = createVerifier(name, publicKey);
  const seed = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-KEY_BYTES);
  return `PRIVATE+KEY+${renderKey(name, id, seed)}`;
}

export function renderVerifierKey({ name, id, key }: Verifier): string {
  return renderKey(name, id, getPublicKeyBytes(key));
}

/**
 * Tells whether the name is not empty and has no spaces or plus sign. By custom it looks like a URL without its
 * scheme.
 */
export function isKeyName(name: string): boolean {
  return name !== '' && name.length <= 255 && !/[\s+\p{Cc}]/u.test(name);
}

/**
 * Signs a text.
 * @param text ends with a newline
 */
export function signNote(text: string, { name, id, secret }: Signer): string {
  const signature = Buffer.concat([id, sign(null, Buffer.from(text), secret)]);
  return `${text}\n— ${name} ${signature.toString('base64')}\n`;
}

/**
 * Returns the text of a note that this key has signed. Signatures of others are ignored, as the format demands.
 * @returns undefined if this key has not signed it
 */
export function openNote(note: string, { name, id, key }: Verifier): string | undefined {
  const end = note.lastIndexOf('\n\n');
  if (end < 0 || !note.endsWith('\n')) return undefined;
  const text = note.slice(0, end + 1);
  for (const line of note.slice(end + 2, -1).split('\n')) {
    const [, by, encoded = ''] = /^— (\S+) (\S+)$/.exec(line) ?? [];
    if (by !== name || !BASE64.test(encoded)) continue;
    const signature = Buffer.from(encoded, 'base64');
    if (signature.length !== ID_BYTES + SIGNATURE_BYTES) continue;
    if (!signature.subarray(0, ID_BYTES).equals(id)) continue;
    if (verify(null, Buffer.from(text), key, signature.subarray(ID_BYTES))) return text;
  }
  return undefined;
}

function createVerifier(name: string, key: KeyObject): Verifier {
  const typed = Buffer.concat([Buffer.from([ED25519]), getPublicKeyBytes(key)]);
  const id = hash('sha256', Buffer.concat([Buffer.from(`${name}\n`), typed]), 'buffer');
  return { name, key, id: id.subarray(0, ID_BYTES) };
}

function getPublicKeyBytes(key: KeyObject): Buffer {
  return key.export({ format: 'der', type: 'spki' }).subarray(-KEY_BYTES);
}

function renderKey(name: string, id: Buffer, key: Buffer): string {
  const typed = Buffer.concat([Buffer.from([ED25519]), key]);
  return `${name}+${id.toString('hex')}+${typed.toString('base64')}`;
}

/** Splits a key into its parts. The base64 part may contain a plus sign itself. */
function parseKey(text: string): { name: string; id: Buffer; key: Buffer } | undefined {
  const [, name = '', id = '', encoded = ''] = /^([^+]+)\+([0-9a-f]{8})\+(\S+)$/.exec(text) ?? [];
  if (!isKeyName(name) || !BASE64.test(encoded)) return undefined;
  const typed = Buffer.from(encoded, 'base64');
  if (typed.length !== 1 + KEY_BYTES || typed[0] !== ED25519) return undefined;
  return { name, id: Buffer.from(id, 'hex'), key: typed.subarray(1) };
}
