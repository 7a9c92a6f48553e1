#!/usr/bin/env node
// Checks what an Inkpad service says about its history, without the service: the signature of a checkpoint, that an
// event is in the history that the checkpoint signs, that a later checkpoint continues an earlier one, and a whole
// exported history. One file without dependencies, for Node 20 and newer; docs/history.md defines what is checked.
import { createHash, createPublicKey, verify } from 'node:crypto';
import { createReadStream, readFileSync, realpathSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Thrown when a proof fails. The message says why. */
export class NotProven extends Error {}

// RFC 6962, section 2.1

const sha256 = (...parts) => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/** @param {Buffer | string} data */
export function leafHash(data) {
  return sha256(Buffer.from([0]), data);
}

/** @param {Buffer} left @param {Buffer} right */
export function nodeHash(left, right) {
  return sha256(Buffer.from([1]), left, right);
}

/**
 * The root that a leaf and its inclusion proof lead to (RFC 9162 section 2.1.3.2).
 * @param {{leaf: Buffer, index: number, size: number, proof: Buffer[]}} given `leaf`: its hash
 * @throws {NotProven} when the proof does not have the length that it must have
 */
export function rootOfInclusion({ leaf, index, size, proof }) {
  if (!isCount(index) || !isCount(size) || index >= size) {
    throw new NotProven(`there is no leaf ${index} in a tree of ${size}`);
  }
  let [at, last, hash] = [BigInt(index), BigInt(size) - 1n, leaf];
  for (const sibling of proof) {
    if (last === 0n) throw new NotProven('the inclusion proof is too long');
    if (at & 1n || at === last) {
      hash = nodeHash(sibling, hash);
      while (!(at & 1n) && at !== 0n) [at, last] = [at >> 1n, last >> 1n];
    } else {
      hash = nodeHash(hash, sibling);
    }
    [at, last] = [at >> 1n, last >> 1n];
  }
  if (last !== 0n) throw new NotProven('the inclusion proof is too short');
  return hash;
}

/** @throws {NotProven} unless the leaf is in the tree */
export function verifyInclusion({ leaf, index, size, proof, root }) {
  if (!rootOfInclusion({ leaf, index, size, proof }).equals(root)) {
    throw new NotProven(`leaf ${index} is not in the tree of ${size}: the root differs`);
  }
}

/**
 * RFC 9162 section 2.1.4.2.
 * @param {{size: number, root: Buffer}} old
 * @param {{size: number, root: Buffer}} later
 * @param {Buffer[]} proof
 * @throws {NotProven} unless the later tree begins with all of the old one
 */
export function verifyConsistency(old, later, proof) {
  const refused = (why) =>
    new NotProven(`the tree of ${later.size} does not continue the tree of ${old.size}: ${why}`);
  if (!isCount(old.size) || !isCount(later.size)) throw refused('a size is no number');
  if (old.size > later.size) throw refused('it is smaller');
  if (old.size === later.size || old.size === 0) {
    if (proof.length > 0) throw refused('the proof is too long');
    if (old.size === later.size && !old.root.equals(later.root)) throw refused('the root differs');
    return;
  }
  const path = [...proof];
  // A complete tree is a part of the later one itself.
  if (isPowerOfTwo(old.size)) path.unshift(old.root);
  let [at, last] = [BigInt(old.size) - 1n, BigInt(later.size) - 1n];
  while (at & 1n) [at, last] = [at >> 1n, last >> 1n];
  const first = path.shift();
  if (!first) throw refused('the proof is too short');
  let [before, after] = [first, first];
  for (const sibling of path) {
    if (last === 0n) throw refused('the proof is too long');
    if (at & 1n || at === last) {
      before = nodeHash(sibling, before);
      after = nodeHash(sibling, after);
      while (!(at & 1n) && at !== 0n) [at, last] = [at >> 1n, last >> 1n];
    } else {
      after = nodeHash(after, sibling);
    }
    [at, last] = [at >> 1n, last >> 1n];
  }
  if (last !== 0n) throw refused('the proof is too short');
  if (!before.equals(old.root)) throw refused('the root of the first differs');
  if (!after.equals(later.root)) throw refused('the root of the second differs');
}

function isCount(number) {
  return Number.isSafeInteger(number) && number >= 0;
}

function isPowerOfTwo(number) {
  return Number.isInteger(Math.log2(number));
}

// C2SP signed-note and tlog-checkpoint

const ED25519 = 1;
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');

/** @param {string} text `<name>+<8 hex digits>+<base64>` */
export function verifierOf(text) {
  const [, name, id, encoded] = /^([^+\s]+)\+([0-9a-f]{8})\+(\S+)$/.exec(text.trim()) ?? [];
  const typed = encoded === undefined ? undefined : base64(encoded);
  if (typed?.length !== 33 || typed[0] !== ED25519) {
    throw new NotProven('the key is no verifier key: it must look like name+12345678+base64');
  }
  if (sha256(`${name}\n`, typed).toString('hex', 0, 4) !== id) {
    throw new NotProven('the key is damaged: its id does not belong to it');
  }
  const der = Buffer.concat([SPKI, typed.subarray(1)]);
  return { name, id, key: createPublicKey({ key: der, format: 'der', type: 'spki' }) };
}

/**
 * @param {string} note the signed checkpoint
 * @param {string} verifierKey
 * @returns {{origin: string, size: number, root: Buffer}}
 * @throws {NotProven} unless the key has signed it
 */
export function verifyCheckpoint(note, verifierKey) {
  const { name, id, key } = verifierOf(verifierKey);
  const end = note.lastIndexOf('\n\n');
  const text = end < 0 || !note.endsWith('\n') ? '' : note.slice(0, end + 1);
  const signed = note
    .slice(end + 2, -1)
    .split('\n')
    .some((line) => {
      const [, by, encoded = ''] = /^— (\S+) (\S+)$/.exec(line) ?? [];
      const bytes = by === name ? base64(encoded) : undefined;
      if (text === '' || bytes?.length !== 68 || bytes.toString('hex', 0, 4) !== id) return false;
      return verify(null, Buffer.from(text), key, bytes.subarray(4));
    });
  if (!signed) throw new NotProven(`the checkpoint has no valid signature of ${name}`);
  const [origin, size = '', root = ''] = text.split('\n');
  if (origin !== name) throw new NotProven(`the checkpoint is of ${origin}, not of ${name}`);
  const count = /^(0|[1-9]\d*)$/.test(size) ? Number(size) : NaN;
  if (!isCount(count)) throw new NotProven('the checkpoint has no size');
  return { origin, size: count, root: hashIn(root, 'the root of the checkpoint') };
}

function base64(text) {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}

function hashIn(text, what) {
  const bytes = typeof text === 'string' ? base64(text) : undefined;
  if (bytes?.length !== 32) throw new NotProven(`${what} is no SHA-256 hash in base64`);
  return bytes;
}

function hashesIn(list, what) {
  if (!Array.isArray(list)) throw new NotProven(`${what} is missing`);
  return list.map((text) => hashIn(text, what));
}

// The hashes of Inkpad (docs/history.md)

/** RFC 8785, for what JSON.parse returns. */
export function canonicalJson(value) {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(value[name])}`);
  return `{${members.join(',')}}`;
}

/**
 * The hash of an event (hex), which covers it and all events of its stream before it.
 * @param event {stream, revision, id, type, version, data, meta}
 * @param {string | null} previous the hash of the event before it, null for the first
 */
export function eventHash(event, previous) {
  const { stream, revision, id, type, version, data, meta } = event;
  const text = canonicalJson({ stream, revision, id, type, version, data, meta });
  return sha256((revision === 0 ? stream : previous) + text).toString('hex');
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** The id of an event as the API shows it. */
export function publicEventId(id) {
  if (!/^[0-9a-f-]{36}$/.test(id)) throw new NotProven('the event has no id');
  let rest = BigInt(`0x${id.replaceAll('-', '')}`);
  let text = '';
  for (let i = 0; i < 26; i++, rest >>= 5n) text = CROCKFORD[Number(rest & 31n)] + text;
  return `evt_${text}`;
}

/** The hash of the leaf that stands for an event. */
export function leafOf({ stream, revision, hash }) {
  return leafHash(`inkpad event 1\n${stream}\n${revision}\n${hash}\n`);
}

/**
 * The response to GET …/history/:event_id/proof.
 * @returns what is proven
 * @throws {NotProven}
 */
export function verifyProof(response, verifierKey) {
  const { size, root } = verifyCheckpoint(String(response.checkpoint), verifierKey);
  const { event, leaf_index: index, event_id: id } = response;
  if (response.tree_size !== size || !hashIn(response.root_hash, 'root_hash').equals(root)) {
    throw new NotProven('the response names another tree than its checkpoint');
  }
  const hash = eventHash(event, response.previous_hash);
  if (hash !== response.hash)
    throw new NotProven('the event does not have the hash that it is said to have');
  if (publicEventId(event.id) !== id) throw new NotProven('the event has another id');
  const proof = hashesIn(response.inclusion_proof, 'inclusion_proof');
  verifyInclusion({ leaf: leafOf({ ...event, hash }), index, size, proof, root });
  return { event, index, size };
}

/** Two checkpoints and the proof between them: {first, second, consistency_proof}. */
export function verifyContinuation(response, verifierKey) {
  const first = verifyCheckpoint(String(response.first), verifierKey);
  const second = verifyCheckpoint(String(response.second), verifierKey);
  verifyConsistency(first, second, hashesIn(response.consistency_proof, 'consistency_proof'));
  return { first, second };
}

export const EXPORT_FORMAT = 'inkpad-history/1';

/**
 * An exported history, line by line: every event has the hash of its content, follows the one before it in its stream,
 * and is in the tree that the checkpoint signs. What memory it takes depends on the number of streams alone.
 * @param {AsyncIterable<string>} lines
 * @returns {Promise<{accountId: number, events: number, streams: number, size: number, keys: number}>}
 * @throws {NotProven} which names the line
 */
export async function verifyExport(lines, verifierKey, each = async () => undefined) {
  let header;
  let end;
  let number = 0;
  let tree;
  let keys = 0;
  let events = 0;
  let last = -1;
  const heads = new Map();
  for await (const line of lines) {
    number++;
    try {
      const entry = parsed(line);
      if (end) throw new NotProven('something follows the end');
      if (header === undefined) {
        if (entry.format !== EXPORT_FORMAT)
          throw new NotProven(`the format is not ${EXPORT_FORMAT}`);
        header = entry;
        tree = verifyCheckpoint(String(entry.checkpoint), verifierKey);
      } else if (entry.event) {
        last = verifyExported(entry, { header, tree, heads, last });
        events++;
      } else if (entry.personal_key) {
        keys++;
      } else if (entry.picture) {
        verifyPicture(entry.picture);
      } else if (entry.end) {
        end = entry.end;
        if (end.events !== events)
          throw new NotProven(`${events} of ${end.events} events are here`);
        if (end.streams !== heads.size)
          throw new NotProven(`${heads.size} of ${end.streams} streams are here`);
      } else {
        throw new NotProven('this line is of no known kind');
      }
      await each(entry);
    } catch (error) {
      if (error instanceof NotProven) throw new NotProven(`line ${number}: ${error.message}`);
      throw error;
    }
  }
  if (!header) throw new NotProven('the file is empty');
  if (!end) throw new NotProven('the file ends too early: its last line is missing');
  return { accountId: header.account_id, events, streams: heads.size, size: tree.size, keys };
}

/** That it is the picture that an event names by this hash. */
function verifyPicture({ hash, png }) {
  const actual = createHash('sha256')
    .update(Buffer.from(String(png), 'base64'))
    .digest('hex');
  if (actual !== hash) throw new NotProven(`the picture ${hash} was changed`);
}

function verifyExported(
  { event, leaf_index: index, inclusion_proof: inclusionProof },
  { header, tree, heads, last },
) {
  const { stream, revision, hash } = event;
  const named = `${stream} revision ${revision}`;
  if (event.meta?.accountId !== header.account_id)
    throw new NotProven(`${named} is of another store`);
  if (!(index > last)) throw new NotProven(`${named} is not in the order of the history`);
  const before = heads.get(stream);
  const next = before === undefined ? 0 : before.revision + 1;
  if (revision !== next) throw new NotProven(`${stream} lacks revision ${next}`);
  if (eventHash(event, before?.hash ?? null) !== hash) throw new NotProven(`${named} was changed`);
  const proof = hashesIn(inclusionProof, 'inclusion_proof');
  try {
    verifyInclusion({ leaf: leafOf(event), index, size: tree.size, proof, root: tree.root });
  } catch (error) {
    throw new NotProven(`${named}: ${error.message}`);
  }
  heads.set(stream, { revision, hash });
  return index;
}

function parsed(line) {
  try {
    const value = JSON.parse(line);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Told below.
  }
  throw new NotProven('this is no JSON object');
}

// From the shell

const USAGE = `Usage: node verifier.mjs FILE… --key KEY

FILE  what GET …/history/:event_id/proof returns, a checkpoint, what checkpoint:consistency prints,
      or a history that history:export has written
KEY   the service's verifier key (name+12345678+base64), or a file that holds it`;

async function main(args) {
  const at = args.indexOf('--key');
  const files = args.filter((_, i) => at < 0 || (i !== at && i !== at + 1));
  const key = args[at + 1];
  const isOption = (file) => file.startsWith('--');
  if (at < 0 || key === undefined || files.length === 0 || files.some(isOption)) {
    console.error(USAGE);
    return 2;
  }
  const verifierKey = /^[^+\s]+\+[0-9a-f]{8}\+/.test(key) ? key : readFileSync(key, 'utf8');
  for (const file of files) {
    try {
      console.log(`${file}: ${await proven(file, verifierKey)}`);
    } catch (error) {
      if (!(error instanceof NotProven)) throw error;
      console.error(`${file}: NOT PROVEN: ${error.message}`);
      return 1;
    }
  }
  return 0;
}

/** @returns {Promise<string>} what is proven, as a sentence */
async function proven(file, verifierKey) {
  const start = await firstLine(file);
  if (start.startsWith('{"format"')) {
    const lines = createInterface({ input: createReadStream(file), crlfDelay: Infinity });
    const { accountId, events, streams, size } = await verifyExport(lines, verifierKey);
    return `the ${events} events of ${streams} streams of store ${accountId} are all in the history of ${size} events that was signed`;
  }
  const text = readFileSync(file, 'utf8');
  if (!start.startsWith('{')) {
    const { origin, size } = verifyCheckpoint(text, verifierKey);
    return `${origin} has signed a history of ${size} events`;
  }
  const response = parsed(text);
  if ('consistency_proof' in response) {
    const { first, second } = verifyContinuation(response, verifierKey);
    return `the history of ${second.size} events begins with the ${first.size} events that were signed before`;
  }
  const { event, index, size } = verifyProof(response, verifierKey);
  return `event ${event.id} (${event.type}, ${event.stream} revision ${event.revision}) is number ${index} in the history of ${size} events that was signed`;
}

async function firstLine(file) {
  const input = createReadStream(file);
  try {
    for await (const line of createInterface({ input })) return line;
    return '';
  } finally {
    input.destroy();
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  process.exitCode = await main(process.argv.slice(2));
}
