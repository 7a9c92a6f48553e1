import { execFileSync } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32, inflateRawSync } from 'node:zlib';

/** Thrown for a .pkpass that a phone would not show. The rules are listed in README.md. */
export class RefusedPass extends Error {
  /** @param {string} rule @param {string} message */
  constructor(rule, message) {
    super(`${rule}: ${message}`);
    this.rule = rule;
  }
}

/**
 * @param {Buffer} bytes of the .pkpass
 * @param {string} root PEM that the phone trusts
 * @throws {RefusedPass}
 */
export function readPass(bytes, root) {
  const files = unzip(bytes);
  const manifest = files.get('manifest.json');
  const signature = files.get('signature');
  refuse('PASS-01', !manifest || !signature, 'manifest.json or signature is missing');
  const signer = verify(manifest, signature, root);
  checkManifest(JSON.parse(manifest), files);
  refuse('PASS-05', !files.has('icon.png') && !files.has('icon@2x.png'), 'there is no icon');
  const pass = readJson(files.get('pass.json'));
  checkKeys(pass);
  refuse('PASS-04', signer.UID !== pass.passTypeIdentifier, `signed for ${signer.UID}`);
  refuse('PASS-04', signer.OU !== pass.teamIdentifier, `signed by team ${signer.OU}`);
  return { pass, files };
}

function checkManifest(sums, files) {
  const listed = Object.keys(sums).sort();
  const there = [...files.keys()].filter((name) => !['manifest.json', 'signature'].includes(name));
  refuse('PASS-02', listed.join() !== there.sort().join(), `the manifest lists ${listed.join()}`);
  for (const name of listed) {
    const sum = createHash('sha1').update(files.get(name)).digest('hex');
    refuse('PASS-02', sums[name] !== sum, `${name} has another sum than in the manifest`);
  }
}

/** Keys that phones of today ignore or are about to, as in Apple's "Wallet Passes" and "Wallet Developer Guide". */
const DEPRECATED = {
  barcode: 'use barcodes',
  relevantDate: 'use relevantDates',
  suppressStripShine: 'no phone since iOS 7 draws a shine',
};

function checkKeys(pass) {
  const texts = ['passTypeIdentifier', 'teamIdentifier', 'serialNumber', 'organizationName', 'description']; // prettier-ignore
  refuse('PASS-06', pass.formatVersion !== 1, 'formatVersion is not 1');
  for (const key of texts) {
    refuse('PASS-06', typeof pass[key] !== 'string' || pass[key] === '', `${key} is missing`);
  }
  const { webServiceURL: url, authenticationToken: token } = pass;
  refuse('PASS-07', (url === undefined) !== (token === undefined), 'web service or token alone');
  refuse('PASS-07', url !== undefined && !url.startsWith('https://'), `${url} is not https`);
  refuse('PASS-07', token !== undefined && token.length < 16, 'the token is too short');
  refuse('PASS-08', (pass.locations ?? []).length > 10, 'more than ten locations');
  for (const { format } of pass.barcodes ?? []) {
    refuse('PASS-09', !/^PKBarcodeFormat(QR|PDF417|Aztec|Code128)$/.test(format), `barcode ${format}`); // prettier-ignore
  }
  for (const [key, instead] of Object.entries(DEPRECATED)) {
    refuse('PASS-11', pass[key] !== undefined, `${key} is deprecated: ${instead}`);
  }
  const keys = listFields(pass).map(({ key }) => key);
  refuse('PASS-10', new Set(keys).size < keys.length, 'two fields have one key');
}

/** Lists the fields of every section of a pass. */
export function listFields({ storeCard = {} }) {
  return Object.values(storeCard).flat();
}

/** @returns {Record<string, string>} the signer's name */
function verify(manifest, signature, root) {
  const folder = mkdtempSync(join(tmpdir(), 'pass-'));
  const path = (name) => join(folder, name);
  try {
    writeFileSync(path('manifest'), manifest);
    writeFileSync(path('signature'), signature);
    writeFileSync(path('root'), root);
    // `any`, as the certificate is not one for mails.
    execFileSync('openssl', ['cms', '-verify', '-binary', '-inform', 'DER', '-in', path('signature'), '-content', path('manifest'), '-CAfile', path('root'), '-purpose', 'any', '-signer', path('signer'), '-out', path('out')], { stdio: 'pipe' }); // prettier-ignore
    const { subject } = new X509Certificate(readFileSync(path('signer')));
    return Object.fromEntries(subject.split('\n').map((line) => line.split(/=(.*)/s)));
  } catch (error) {
    throw new RefusedPass('PASS-03', String(error.stderr ?? error));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function readJson(bytes) {
  try {
    return JSON.parse(bytes);
  } catch {
    throw new RefusedPass('PASS-06', 'pass.json is missing, or no JSON');
  }
}

/** By the directory at its end (APPNOTE 4.3.12), as unzipping programs do. @returns {Map<string, Buffer>} */
function unzip(bytes) {
  const end = bytes.lastIndexOf(Buffer.from('PK\u0005\u0006'));
  refuse('PASS-01', end < 0, 'no zip archive');
  const files = new Map();
  let at = bytes.readUInt32LE(end + 16);
  for (let left = bytes.readUInt16LE(end + 10); left > 0; left -= 1) {
    refuse('PASS-01', bytes.readUInt32LE(at) !== 0x02014b50, 'a broken directory');
    const [method, sum, packed] = [bytes.readUInt16LE(at + 10), bytes.readUInt32LE(at + 16), bytes.readUInt32LE(at + 20)]; // prettier-ignore
    const named = bytes.readUInt16LE(at + 28);
    const name = bytes.toString('utf8', at + 46, at + 46 + named);
    const local = bytes.readUInt32LE(at + 42);
    refuse('PASS-01', bytes.readUInt32LE(local) !== 0x04034b50, `${name} is not where it should be`); // prettier-ignore
    const start = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
    const stored = bytes.subarray(start, start + packed);
    const content = method === 8 ? inflateRawSync(stored) : stored;
    refuse('PASS-01', crc32(content) !== sum, `${name} is damaged`);
    files.set(name, content);
    at += 46 + named + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32);
  }
  return files;
}

/** @returns {asserts isInvalid is false} */
function refuse(rule, isInvalid, message) {
  if (isInvalid) throw new RefusedPass(rule, message);
}
