import { beforeAll, describe, expect, it } from '@jest/globals';
import { createPrivateKey } from 'node:crypto';
import {
  appleCertificates,
  PASS_TYPE,
  TEAM,
  type AppleCertificates,
} from '../../../test/support/emulators/apple/certificates.mjs';
import { readPass } from '../../../test/support/emulators/apple/pass-reader.mjs';
import { createPassFile, createPassPackage, createZip } from './pass-package.js';
import { createPassSigner, type PassSigner } from './pass-signature.js';

const NOW = new Date();
const ICON = Buffer.from('not really an image');
const pass = (changes: object = {}) =>
  Buffer.from(
    JSON.stringify({
      formatVersion: 1,
      passTypeIdentifier: PASS_TYPE,
      teamIdentifier: TEAM,
      serialNumber: 's',
      organizationName: 'Café',
      description: 'Stamp card',
      storeCard: {},
      ...changes,
    }),
  );

describe('a signed pass', () => {
  let certificates: AppleCertificates;
  let sign: PassSigner;

  beforeAll(() => {
    certificates = appleCertificates();
    const key = createPrivateKey(certificates.pass.key);
    sign = createPassSigner({
      certificate: certificates.pass.certificate,
      key,
      wwdr: certificates.wwdr,
    });
  });

  const files = (json = pass()) => [
    createPassFile('pass.json', json),
    createPassFile('icon.png', ICON),
  ];

  it('is accepted by OpenSSL, with both certificates in it', async () => {
    const { pass: passJson, files: entries } = readPass(
      await createPassPackage(files(), sign, NOW),
      certificates.root,
    );
    expect(passJson.serialNumber).toBe('s');
    expect([...entries.keys()]).toEqual(['pass.json', 'icon.png', 'manifest.json', 'signature']);
    expect(entries.get('icon.png')).toEqual(ICON);
  });

  it('is refused when one bit of its files or its manifest is changed', async () => {
    const bytes = await createPassPackage(files(), sign, NOW);
    const parts = ['"serialNumber":"s"', 'not really', '"icon.png":"'];
    for (const part of parts) {
      const changedBytes = Buffer.from(bytes);
      const at = changedBytes.indexOf(part) + part.length - 2;
      changedBytes.writeUInt8(changedBytes.readUInt8(at) ^ 1, at);
      expect(() => readPass(changedBytes, certificates.root)).toThrow(/PASS-0/);
    }
  });

  it('is refused when its signature is of another manifest', async () => {
    const manifest = Buffer.from('{}');
    const otherBytes = Buffer.from('{ }');
    const zip = createZip({ 'manifest.json': manifest, signature: await sign(otherBytes, NOW) });
    expect(() => readPass(zip, certificates.root)).toThrow(/PASS-03/);
  });

  it('is refused under another root certificate', async () => {
    const bytes = await createPassPackage(files(), sign, NOW);
    expect(() => readPass(bytes, appleCertificates().root)).toThrow(/PASS-03/);
  });

  it('is packed identically from equal files, and keeps large files and long names', async () => {
    const long = `${'ü'.repeat(90)}.png`;
    const large = Buffer.alloc(300_000, 7);
    const zip = createZip({ [long]: large, b: Buffer.alloc(0) });
    expect(createZip({ [long]: large, b: Buffer.alloc(0) })).toEqual(zip);
    const more = [
      ...files(),
      createPassFile(long, large),
      createPassFile('empty', Buffer.alloc(0)),
    ];
    const { files: entries } = readPass(
      await createPassPackage(more, sign, NOW),
      certificates.root,
    );
    expect(entries.get(long)).toEqual(large);
    expect(entries.get('empty')).toHaveLength(0);
  });

  // The rules of the emulator (test/support/emulators/apple/README.md): each refuses what breaks it.
  it.each<[string, object]>([
    ['PASS-04', { passTypeIdentifier: 'pass.other' }],
    ['PASS-04', { teamIdentifier: 'OTHER' }],
    ['PASS-06', { formatVersion: 2 }],
    ['PASS-06', { description: '' }],
    ['PASS-07', { webServiceURL: 'https://a.example' }],
    ['PASS-07', { webServiceURL: 'http://a.example', authenticationToken: 'x'.repeat(16) }],
    ['PASS-07', { webServiceURL: 'https://a.example', authenticationToken: 'x'.repeat(15) }],
    ['PASS-08', { locations: Array.from({ length: 11 }, () => ({})) }],
    ['PASS-09', { barcodes: [{ format: 'QR' }] }],
    ['PASS-11', { barcode: { format: 'PKBarcodeFormatQR' } }],
    ['PASS-11', { relevantDate: '2027-01-31T10:00:00Z' }],
    ['PASS-11', { suppressStripShine: true }],
    ['PASS-10', { storeCard: { backFields: [{ key: 'a' }, { key: 'a' }] } }],
  ])('is refused by %s: %j', async (rule, changes) => {
    const bytes = await createPassPackage(files(pass(changes)), sign, NOW);
    expect(() => readPass(bytes, certificates.root)).toThrow(new RegExp(`^${rule}`));
  });

  it('is refused by PASS-01, PASS-02, PASS-05 and PASS-06 when a part is missing or invalid', async () => {
    const read = (bytes: Buffer) => () => readPass(bytes, certificates.root);
    expect(read(Buffer.from('no archive'))).toThrow(/^PASS-01/);
    expect(read(createZip({ 'pass.json': pass() }))).toThrow(/^PASS-01/);
    const manifest = Buffer.from('{"pass.json":"0"}');
    const signed = { 'manifest.json': manifest, signature: await sign(manifest, NOW) };
    expect(read(createZip({ ...signed, 'pass.json': pass() }))).toThrow(/^PASS-02/);
    expect(read(createZip(signed))).toThrow(/^PASS-02/);
    expect(read(await createPassPackage([createPassFile('pass.json', pass())], sign, NOW))).toThrow(
      /^PASS-05/,
    );
    expect(read(await createPassPackage([createPassFile('pass.json', Buffer.from('{')), createPassFile('icon.png', ICON)], sign, NOW))).toThrow(/^PASS-06/); // prettier-ignore
  });
});
