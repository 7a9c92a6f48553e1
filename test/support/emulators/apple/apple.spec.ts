import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type OutgoingHttpHeaders, type SecureClientSessionOptions } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { PassJson } from '#outbound/apple-wallet/pass-json.js';
import { createPassFile, createPassPackage } from '#outbound/apple-wallet/pass-package.js';
import { createPassSigner } from '#outbound/apple-wallet/pass-signature.js';
import { Apns } from './apns.mjs';
import { appleCertificates, PASS_TYPE, TEAM, type AppleCertificates } from './certificates.mjs';
import { findChangeMessage, Phone } from './phone.mjs';

const TOKEN = 'ab'.repeat(32);
let certificates: AppleCertificates;
let apns: Apns;

beforeAll(async () => {
  certificates = appleCertificates();
  apns = await Apns.start(certificates);
  apns.register(TOKEN);
});

afterAll(() => apns.stop());

async function push(
  changes: OutgoingHttpHeaders = {},
  { body = '{}', ...tls }: SecureClientSessionOptions & { body?: string } = {
    cert: certificates.pass.certificate + certificates.wwdr,
    key: certificates.pass.key,
  },
): Promise<{ status: number; reason: string }> {
  const session = connect(apns.url, { ca: certificates.root, ...tls });
  const stream = session.request({
    ':method': 'POST',
    ':path': `/3/device/${TOKEN}`,
    'apns-topic': PASS_TYPE,
    'apns-push-type': 'background',
    'apns-priority': '5',
    ...changes,
  });
  stream.end(body);
  const [headers] = (await once(stream, 'response')) as [{ ':status': number }];
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  session.close();
  const { reason = '' } = (text === '' ? {} : JSON.parse(text)) as { reason?: string };
  return { status: headers[':status'], reason };
}

describe('the emulator of Apple’s push service', () => {
  it('accepts a valid push with 200', async () => {
    expect(await push()).toEqual({ status: 200, reason: '' });
  });

  it.each<[string, OutgoingHttpHeaders, number, string]>([
    ['APNS-01', { ':method': 'PUT' }, 405, 'MethodNotAllowed'],
    ['APNS-01', { ':path': '/2/device/ab' }, 404, 'BadPath'],
    ['APNS-01', { ':path': '/3/device/xyz' }, 400, 'BadDeviceToken'],
    ['APNS-03', { 'apns-topic': 'pass.other' }, 400, 'TopicDisallowed'],
    ['APNS-04', { 'apns-push-type': 'loud' }, 400, 'InvalidPushType'],
    ['APNS-04', { 'apns-priority': '10' }, 400, 'BadPriority'],
    ['APNS-05', { ':path': `/3/device/${'cd'.repeat(32)}` }, 400, 'BadDeviceToken'],
  ])('enforces %s: refuses %j with %i %s', async (_, changes, status, reason) => {
    const { 'content-length': _length, ...others } = changes;
    expect(await push(others)).toEqual({ status, reason });
  });

  it('APNS-01 refuses an empty body, and one of more than 4 KB', async () => {
    const tls = {
      cert: certificates.pass.certificate + certificates.wwdr,
      key: certificates.pass.key,
    };
    expect(await push({}, { ...tls, body: 'x'.repeat(4097) })).toMatchObject({ status: 413 });
    expect(await push({}, { ...tls, body: '' })).toMatchObject({ reason: 'PayloadEmpty' });
  });

  it('APNS-02 refuses a missing or foreign certificate, and an expired, foreign or forged token', async () => {
    const otherCertificates = appleCertificates();
    expect(await push({}, {})).toEqual({ status: 403, reason: 'MissingProviderToken' });
    const stranger = {
      cert: otherCertificates.pass.certificate + otherCertificates.wwdr,
      key: otherCertificates.pass.key,
    };
    expect(await push({}, stranger)).toEqual({ status: 403, reason: 'BadCertificate' });
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    apns.trust('KEY1234567', publicKey.export({ type: 'spki', format: 'pem' }).toString(), TEAM);
    const token = (claims: object, head: object = { alg: 'ES256', kid: 'KEY1234567' }) => {
      const text = [head, claims]
        .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
        .join('.');
      const key = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const;
      return `bearer ${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`;
    };
    const iat = Math.floor(Date.now() / 1000);
    const pushWith = async (authorization: string) => (await push({ authorization }, {})).reason;
    expect(await pushWith(token({ iss: TEAM, iat }))).toBe('');
    expect(await pushWith(token({ iss: TEAM, iat: iat - 3700 }))).toBe('ExpiredProviderToken');
    expect(await pushWith(token({ iss: 'OTHER', iat }))).toBe('InvalidProviderToken');
    expect(await pushWith(token({ iss: TEAM, iat }, { alg: 'ES256', kid: 'K' }))).toBe('InvalidProviderToken'); // prettier-ignore
    expect(await pushWith(`${token({ iss: TEAM, iat }).slice(0, -4)}AAAA`)).toBe(
      'InvalidProviderToken',
    );
    expect(await pushWith('bearer nonsense')).toBe('InvalidProviderToken');
  });

  it('APNS-05 responds 410 for a device that has unregistered', async () => {
    apns.register('ef'.repeat(32));
    apns.unregister('ef'.repeat(32));
    expect(await push({ ':path': `/3/device/${'ef'.repeat(32)}` })).toEqual({
      status: 410,
      reason: 'Unregistered',
    });
  });
});

describe('the emulator of an iPhone', () => {
  type Reply = { status: number; body?: object | Buffer; type?: string };
  let reply: (url: string) => Reply;
  let server: Server;
  let phone: Phone;

  beforeAll(async () => {
    server = createServer(({ url = '' }, response) => {
      const { status, body, type = 'application/json' } = reply(url);
      response.writeHead(status, { 'content-type': type });
      response.end(Buffer.isBuffer(body) || body === undefined ? body : JSON.stringify(body));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const reaches = (url: string) => url.replace('https://cards.example', `http://127.0.0.1:${port}`); // prettier-ignore
    phone = new Phone({ root: certificates.root, apns, reaches });
  });

  afterAll(() => void server.close());

  const createPass = (serialNumber: string) => {
    const key = createPrivateKey(certificates.pass.key);
    const { certificate } = certificates.pass;
    const json = {
      formatVersion: 1,
      passTypeIdentifier: PASS_TYPE,
      teamIdentifier: TEAM,
      serialNumber,
      organizationName: 'Café',
      description: 'Card',
      webServiceURL: 'https://cards.example/w',
      authenticationToken: 'x'.repeat(16),
      storeCard: {},
    };
    const files = [
      createPassFile('pass.json', Buffer.from(JSON.stringify(json))),
      createPassFile('icon.png', Buffer.from('icon')),
    ];
    return createPassPackage(
      files,
      createPassSigner({ certificate, key, wwdr: certificates.wwdr }),
      new Date(),
    );
  };

  it('PHONE-01 rejects a link with another content type or status', async () => {
    reply = () => ({ status: 200, body: {} });
    await expect(phone.add('https://cards.example/x')).rejects.toThrow(/responded with 200 application\/json/); // prettier-ignore
    reply = () => ({ status: 302, type: 'application/vnd.apple.pkpass' });
    await expect(phone.add('https://cards.example/x')).rejects.toThrow(/responded with 302/);
  });

  it('PHONE-02 to PHONE-04 report an unknown status, an empty list and a changed serial number', async () => {
    const pass = { status: 200, type: 'application/vnd.apple.pkpass', body: await createPass('s') };
    reply = (url) => (url === '/x' ? pass : { status: 204 });
    await expect(phone.add('https://cards.example/x')).rejects.toThrow(
      /POST .* responded with 204/,
    );
    reply = (url) => (url === '/x' ? pass : { status: 201 });
    await phone.add('https://cards.example/x');
    phone.complaints.length = 0;
    reply = () => ({ status: 404 });
    await phone.refresh();
    reply = () => ({ status: 200, body: { serialNumbers: [], lastUpdated: '1' } });
    await phone.refresh();
    const otherPass = { ...pass, body: await createPass('t') };
    reply = (url) =>
      url.includes('/passes/')
        ? otherPass
        : { status: 200, body: { serialNumbers: ['s'], lastUpdated: '1' } };
    await phone.refresh();
    expect(phone.complaints).toEqual([
      expect.stringMatching(/^GET .* responded with 404$/),
      expect.stringMatching(/responded with 404$/),
      '200 with no serial number',
      'Error: the serial number has changed',
    ]);
  });

  const withFields = (...backFields: PassJson['storeCard']['backFields']) =>
    ({ storeCard: { backFields } }) as unknown as PassJson;
  const createField = (key: string, value: number, changeMessage = 'Now %@') => ({
    key,
    value,
    changeMessage,
  });

  it('PHONE-05 shows the change message of one changed field, and a general text for several', () => {
    const before = withFields({ key: 'a', value: 1 }, { key: 'b', value: 1 });
    expect(findChangeMessage(before, withFields(createField('a', 2)))).toBe('Now 2');
    expect(findChangeMessage(before, withFields(createField('a', 1)))).toBeUndefined();
    expect(findChangeMessage(before, withFields({ key: 'a', value: 2 }))).toBeUndefined();
    expect(findChangeMessage(before, withFields(createField('a', 2), createField('b', 2)))).toBe(
      'Card changed',
    );
    expect(findChangeMessage(before, withFields(createField('a', 2, 'New')))).toBe('Card changed');
  });
});
