import { createPrivateKey, randomBytes, webcrypto, X509Certificate, createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import {
  appleCertificates,
  PASS_TYPE,
  TEAM,
} from '../test/support/emulators/apple/certificates.mjs';
import { readPass } from '../test/support/emulators/apple/pass-reader.mjs';
import {
  createPassFile,
  createPassPackage,
} from '../dist/libs/outbound/apple-wallet/pass-package.js';
import { createPassSigner } from '../dist/libs/outbound/apple-wallet/pass-signature.js';

/** Passes a second and core that the product promises, with images cached. */
const FLOOR = 400;
/** As large as those of a real card: 78 KB in nine images. */
const IMAGES = { icon: [1, 2, 3], logo: [2, 4, 6], strip: [10, 20, 30] };

/** @param {string[]} args @returns the exit code */
export async function run(args) {
  const { values } = parseArgs({ args, options: { passes: { type: 'string', default: '1000' } } });
  const passes = Number(values.passes);
  const certificates = appleCertificates();
  const images = Object.entries(IMAGES).flatMap(([name, sizes]) =>
    sizes.map((kilobytes, i) => [
      `${name}${['', '@2x', '@3x'][i]}.png`,
      randomBytes(kilobytes * 1024),
    ]),
  );
  const rivals = {
    inkpad: await inkpad(certificates, images),
    'pkijs, signature alone': await pkijs(certificates),
    'passkit-generator': await passkitGenerator(certificates, images),
  };
  readPass(await rivals.inkpad(0), certificates.root);
  readPass(await rivals['passkit-generator'](0), certificates.root);
  console.log('                          passes/s   per core   ms of processor time');
  let reached = false;
  for (const [name, make] of Object.entries(rivals)) {
    const rounds = name === 'passkit-generator' ? Math.ceil(passes / 20) : passes;
    const { perSecond, cpuMs } = await measure(make, rounds);
    if (name === 'inkpad') reached = 1000 / cpuMs >= FLOOR;
    console.log(
      `${name.padEnd(24)} ${perSecond.toFixed(0).padStart(9)} ${(1000 / cpuMs).toFixed(0).padStart(10)} ${cpuMs.toFixed(2).padStart(12)}`,
    );
  }
  console.log(reached ? `above the floor of ${FLOOR}` : `below the floor of ${FLOOR}`);
  return reached ? 0 : 1;
}

async function measure(make, rounds) {
  for (let i = 0; i < rounds / 10; i += 1) await make(i);
  const used = process.cpuUsage();
  const began = performance.now();
  for (let i = 0; i < rounds; i += 1) await make(i);
  const { user, system } = process.cpuUsage(used);
  return {
    perSecond: rounds / ((performance.now() - began) / 1000),
    cpuMs: (user + system) / 1000 / rounds,
  };
}

function passJson(i) {
  return {
    formatVersion: 1,
    passTypeIdentifier: PASS_TYPE,
    teamIdentifier: TEAM,
    serialNumber: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
    organizationName: 'Corner Café',
    description: 'Stamp card',
    storeCard: { headerFields: [{ key: 'stamps', label: 'Stamps', value: `${i % 10}/10` }] },
  };
}

async function inkpad(certificates, images) {
  const files = images.map(([name, bytes]) => createPassFile(name, bytes));
  const { certificate, key } = certificates.pass;
  const sign = createPassSigner({
    certificate,
    key: createPrivateKey(key),
    wwdr: certificates.wwdr,
  });
  return (i) => {
    const json = createPassFile('pass.json', Buffer.from(JSON.stringify(passJson(i))));
    return createPassPackage([json, ...files], sign, new Date());
  };
}

/** Measures the signature alone with a general library. */
async function pkijs(certificates) {
  const [lib, asn1] = [await import('pkijs'), await import('asn1js')];
  lib.setEngine('node', new lib.CryptoEngine({ name: 'node', crypto: webcrypto }));
  const parse = (pem) => {
    const { raw } = new X509Certificate(pem);
    return new lib.Certificate({ schema: asn1.fromBER(new Uint8Array(raw).buffer).result });
  };
  const [leaf, wwdr] = [parse(certificates.pass.certificate), parse(certificates.wwdr)];
  const der = createPrivateKey(certificates.pass.key).export({ type: 'pkcs8', format: 'der' });
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };
  const key = await webcrypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign']);
  const attribute = (type, value) => new lib.Attribute({ type, values: [value] });
  const DATA = '1.2.840.113549.1.7.1';
  return async (i) => {
    const digest = createHash('sha256')
      .update(JSON.stringify(passJson(i)))
      .digest();
    const attributes = [
      attribute('1.2.840.113549.1.9.3', new asn1.ObjectIdentifier({ value: DATA })),
      attribute('1.2.840.113549.1.9.5', new asn1.UTCTime({ valueDate: new Date() })),
      attribute('1.2.840.113549.1.9.4', new asn1.OctetString({ valueHex: digest })),
    ];
    const { issuer, serialNumber } = leaf;
    const signed = new lib.SignedData({
      version: 1,
      encapContentInfo: new lib.EncapsulatedContentInfo({ eContentType: DATA }),
      signerInfos: [
        new lib.SignerInfo({
          version: 1,
          sid: new lib.IssuerAndSerialNumber({ issuer, serialNumber }),
          signedAttrs: new lib.SignedAndUnsignedAttributes({ type: 0, attributes }),
        }),
      ],
      certificates: [wwdr, leaf],
    });
    await signed.sign(key, 0, 'SHA-256');
    const content = signed.toSchema(true);
    const info = new lib.ContentInfo({ contentType: '1.2.840.113549.1.7.2', content });
    return Buffer.from(info.toSchema().toBER());
  };
}

async function passkitGenerator(certificates, images) {
  const { PKPass } = await import('passkit-generator');
  const { certificate: signerCert, key: signerKey } = certificates.pass;
  return async (i) => {
    const { storeCard, ...props } = passJson(i);
    const pass = new PKPass(
      Object.fromEntries(images),
      { wwdr: certificates.wwdr, signerCert, signerKey },
      props,
    );
    pass.type = 'storeCard';
    pass.headerFields.push(...storeCard.headerFields);
    return pass.getAsBuffer();
  };
}
