import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import { startGoogleWallet, type GoogleWallet } from './server.mjs';

const ISSUER = '3388000000022000000';
const SCOPE = 'https://www.googleapis.com/auth/wallet_object.issuer';
const CLASS = {
  id: `${ISSUER}.card_1`,
  issuerName: 'Corner Café',
  programName: 'Coffee',
  programLogo: { sourceUri: { uri: 'https://cards.example/logo.png' } },
  reviewStatus: 'UNDER_REVIEW',
};
const OBJECT = {
  id: `${ISSUER}.cc_1`,
  classId: CLASS.id,
  state: 'ACTIVE',
  loyaltyPoints: { label: 'Stamps', balance: { string: '3 / 10' } },
};

let google: GoogleWallet;
let clock = Date.now();

beforeEach(async () => {
  google = await startGoogleWallet({ requestsPerSecond: 1000, now: () => clock });
});
afterEach(() => google.stop());

const encodePart = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

function jwt(claims: object, header: object = {}, key = google.account.privateKey): string {
  const text = `${encodePart({ alg: 'RS256', typ: 'JWT', kid: google.account.keyId, ...header })}.${encodePart(claims)}`;
  return `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`;
}

function createClaims(change: object = {}): object {
  const iat = Math.floor(clock / 1000);
  const { email: iss } = google.account;
  return { iss, scope: SCOPE, aud: google.tokenUrl, iat, exp: iat + 3600, ...change };
}

async function exchange(assertion: string, grant = 'urn:ietf:params:oauth:grant-type:jwt-bearer') {
  const body = new URLSearchParams({ grant_type: grant, assertion: assertion });
  const response = await fetch(google.tokenUrl, { method: 'POST', body });
  return { status: response.status, body: (await response.json()) as Record<string, string> };
}

async function call(method: string, path: string, body?: object, token?: string) {
  const bearer = token ?? (await exchange(jwt(createClaims()))).body['access_token'];
  const response = await fetch(`${google.origin}/walletobjects/v1/${path}`, {
    method,
    headers: { authorization: `Bearer ${bearer}` },
    ...(body && { body: JSON.stringify(body) }),
  });
  const json = (await response.json()) as {
    error?: { errors: { reason: string }[] };
  } & Record<string, unknown>;
  return { status: response.status, reason: json.error?.errors[0]?.reason, body: json };
}

const patch = (change: object) => call('PATCH', `loyaltyObject/${OBJECT.id}`, change);
const points = (string: string) => ({ loyaltyPoints: { label: 'Stamps', balance: { string } } });
const addMessage = (message: object) =>
  call('POST', `loyaltyObject/${OBJECT.id}/addMessage`, { message });
const message = (id: string, messageType = 'TEXT_AND_NOTIFY') => ({
  id,
  header: 'Reward',
  body: `Reward ${id}`,
  messageType,
});

async function insertBoth() {
  expect((await call('POST', 'loyaltyClass', CLASS)).status).toBe(200);
  expect((await call('POST', 'loyaltyObject', OBJECT)).status).toBe(200);
}

const otherKey = () =>
  generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString();

describe('the emulator of Google Wallet', () => {
  it('G-01 exchanges a token for a posted form with the JWT bearer grant only', async () => {
    expect((await exchange(jwt(createClaims()))).status).toBe(200);
    expect((await exchange(jwt(createClaims()), 'authorization_code')).status).toBe(400);
    const json = await fetch(google.tokenUrl, { method: 'POST', body: '{}' });
    expect(json.status).toBe(400);
  });

  it('G-02 refuses an assertion with another key, kid or algorithm', async () => {
    expect((await exchange(jwt(createClaims(), {}, otherKey()))).status).toBe(400);
    expect((await exchange(jwt(createClaims(), { kid: 'other' }))).status).toBe(400);
    expect((await exchange(jwt(createClaims(), { alg: 'none' }))).status).toBe(400);
  });

  it('G-03 refuses an assertion with an invalid iss, scope, aud, iat or exp', async () => {
    const iat = Math.floor(clock / 1000);
    for (const wrong of [
      { iss: 'other@cards.iam.gserviceaccount.com' },
      { scope: 'openid' },
      { aud: 'https://oauth2.googleapis.com/token' },
      { exp: iat + 3601 },
      { iat: iat - 3600, exp: iat - 1 },
      { iat: iat + 120, exp: iat + 3600 },
    ]) {
      expect([wrong, (await exchange(jwt(createClaims(wrong)))).status]).toEqual([wrong, 400]);
    }
  });

  it('G-04 refuses an unknown or expired token with 401', async () => {
    const { body } = await exchange(jwt(createClaims()));
    const get = () => call('GET', `loyaltyClass/${CLASS.id}`, undefined, body['access_token']);
    expect((await get()).status).toBe(404);
    expect((await call('GET', `loyaltyClass/${CLASS.id}`, undefined, 'made-up')).status).toBe(401);
    clock += 3601_000;
    expect((await get()).status).toBe(401);
  });

  it('G-05 refuses more than 20 requests in a second with 403', async () => {
    const strict = await startGoogleWallet();
    try {
      const iat = Math.floor(Date.now() / 1000);
      const claims = createClaims({ aud: strict.tokenUrl, iat, exp: iat + 60 });
      const signedJwt = jwt(claims, {}, strict.account.privateKey);
      const body = new URLSearchParams({
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        assertion: signedJwt,
      });
      const response = await fetch(strict.tokenUrl, { method: 'POST', body });
      const { access_token: token } = (await response.json()) as { access_token: string };
      const headers = { authorization: `Bearer ${token}` };
      const url = `${strict.origin}/walletobjects/v1/loyaltyClass/${CLASS.id}`;
      const all = await Promise.all(Array.from({ length: 30 }, () => fetch(url, { headers })));
      const errors = await Promise.all(
        all.filter(({ status }) => status === 403).map((reply) => reply.text()),
      );
      expect(errors.length).toBeGreaterThanOrEqual(1);
      expect(errors[0]).toContain('rateLimitExceeded');
      expect(all.filter(({ status }) => status === 404).length).toBeGreaterThanOrEqual(20);
    } finally {
      await strict.stop();
    }
  });

  it('G-06 refuses malformed ids with 400, and those of other issuers with 403', async () => {
    for (const id of ['card_1', `${ISSUER}.card 1`, `${ISSUER}.`, `${ISSUER}.kärt`]) {
      expect([id, (await call('POST', 'loyaltyClass', { ...CLASS, id })).status]).toEqual([
        id,
        400,
      ]);
    }
    const otherClass = { ...CLASS, id: '3388000000022999999.card_1' };
    expect(await call('POST', 'loyaltyClass', otherClass)).toMatchObject({
      status: 403,
      reason: 'permissionDenied',
    });
  });

  it('G-07 refuses a class without a required field', async () => {
    for (const name of ['issuerName', 'programName', 'programLogo', 'reviewStatus']) {
      const { status } = await call('POST', 'loyaltyClass', { ...CLASS, [name]: undefined });
      expect([name, status]).toEqual([name, 400]);
    }
  });

  it('G-08 refuses an update of a class without UNDER_REVIEW', async () => {
    const { body } = await call('POST', 'loyaltyClass', CLASS);
    expect(body['reviewStatus']).toBe('APPROVED');
    const path = `loyaltyClass/${CLASS.id}`;
    expect((await call('PATCH', path, { programName: 'Tea' })).status).toBe(400);
    expect(
      (await call('PATCH', path, { programName: 'Tea', reviewStatus: 'APPROVED' })).status,
    ).toBe(400);
    const update = await call('PATCH', path, {
      programName: 'Tea',
      reviewStatus: 'UNDER_REVIEW',
    });
    expect(update.body).toMatchObject({ programName: 'Tea', reviewStatus: 'APPROVED' });
  });

  it('G-09 responds 404 to changes of unknown records, 409 to inserting twice, and 405 to deleting', async () => {
    expect((await patch(points('4 / 10'))).status).toBe(404);
    expect((await addMessage(message('a'))).status).toBe(404);
    await insertBoth();
    expect((await call('POST', 'loyaltyClass', CLASS)).status).toBe(409);
    expect((await call('POST', 'loyaltyObject', OBJECT)).status).toBe(409);
    expect((await call('DELETE', `loyaltyObject/${OBJECT.id}`)).status).toBe(405);
  });

  it('G-10 refuses an object without an approved class or a known state', async () => {
    expect((await call('POST', 'loyaltyObject', OBJECT)).reason).toBe('classNotFound');
    await call('POST', 'loyaltyClass', { ...CLASS, reviewStatus: 'DRAFT' });
    expect((await call('POST', 'loyaltyObject', OBJECT)).status).toBe(400);
    await call('PATCH', `loyaltyClass/${CLASS.id}`, { reviewStatus: 'UNDER_REVIEW' });
    expect((await call('POST', 'loyaltyObject', { ...OBJECT, state: 'GONE' })).status).toBe(400);
    expect((await call('POST', 'loyaltyObject', OBJECT)).status).toBe(200);
  });

  it('G-11 refuses images and callbacks without public https addresses, unless allowHttp is set', async () => {
    const image = (uri: string) => ({ sourceUri: { uri } });
    for (const uri of ['http://cards.example/a.png', 'https://localhost/a.png', '/a.png']) {
      const { status } = await call('POST', 'loyaltyClass', { ...CLASS, programLogo: image(uri) });
      expect([uri, status]).toEqual([uri, 400]);
    }
    const callbackOptions = { url: 'http://cards.example/callback' };
    expect((await call('POST', 'loyaltyClass', { ...CLASS, callbackOptions })).status).toBe(400);
    await insertBoth();
    expect((await patch({ heroImage: image('http://cards.example/a.png') })).status).toBe(400);
    const lax = await startGoogleWallet({ allowHttp: true, requestsPerSecond: 1000 });
    await google.stop();
    google = lax;
    clock = Date.now();
    const http = { ...CLASS, programLogo: image('http://localhost:3000/a.png') };
    expect((await call('POST', 'loyaltyClass', http)).status).toBe(200);
  });

  it('G-12 refuses an eleventh location or message, and invalid degrees', async () => {
    await insertBoth();
    const places = (n: number) =>
      Array.from({ length: n }, (_, i) => ({ latitude: i, longitude: 8 }));
    expect((await patch({ merchantLocations: places(10) })).status).toBe(200);
    expect((await patch({ merchantLocations: places(11) })).status).toBe(400);
    expect((await patch({ merchantLocations: [{ latitude: 91, longitude: 8 }] })).status).toBe(400);
    const messages = Array.from({ length: 11 }, (_, i) => message(String(i)));
    expect((await patch({ messages })).status).toBe(400);
  });

  it('G-13 refuses unknown fields', async () => {
    expect((await call('POST', 'loyaltyClass', { ...CLASS, textColor: '#fff' })).status).toBe(400);
    await insertBoth();
    expect((await patch({ stamps: 3 })).status).toBe(400);
  });

  it('G-22 refuses deprecated fields and values, in requests and in save links', async () => {
    await insertBoth();
    const sourceUri = { uri: 'https://cards.example/a.png', description: 'A' };
    const place = { latitude: 52.5, longitude: 13.4 };
    const both = [
      { locations: [place] },
      { locations: [] },
      { infoModuleData: {} },
      { kind: 'walletobjects#loyaltyObject' },
      { version: '1' },
      { heroImage: { sourceUri } },
    ];
    for (const deprecated of [...both, { barcode: { type: 'qrCode' } }, { state: 'active' }]) {
      expect([deprecated, (await patch(deprecated)).status]).toEqual([deprecated, 400]);
    }
    const reviewStatus = 'UNDER_REVIEW';
    for (const deprecated of [
      ...both,
      { programLogo: { sourceUri } },
      { allowMultipleUsersPerObject: true },
      { wordMark: {} },
      { callbackOptions: { updateRequestUrl: 'https://cards.example/update' } },
      { multipleDevicesAndHoldersAllowedStatus: 'oneUserAllDevices' },
    ]) {
      const path = `loyaltyClass/${CLASS.id}`;
      const { status } = await call('PATCH', path, { reviewStatus, ...deprecated });
      expect([deprecated, status]).toEqual([deprecated, 400]);
      const newClass = { ...CLASS, id: `${ISSUER}.card_2`, ...deprecated };
      expect((await call('POST', 'loyaltyClass', newClass)).status).toBe(400);
    }
    const loyaltyObjects = [{ ...OBJECT, id: `${ISSUER}.cc_2`, locations: [place] }];
    const { email: iss } = google.account;
    const iat = Math.floor(clock / 1000);
    const token = jwt({
      iss,
      aud: 'google',
      typ: 'savetowallet',
      iat,
      payload: { loyaltyObjects },
    });
    expect((await google.save(`${google.saveUrl}/${token}`)).status).toBe(400);
  });

  it('G-14 merges the fields of a patch, replaces arrays, and removes null fields', async () => {
    await insertBoth();
    await patch({ accountName: 'Anna', textModulesData: [{ id: 'a', header: 'A', body: 'A' }] });
    await patch({ textModulesData: [{ id: 'b', header: 'B', body: 'B' }] });
    const { body } = await patch({ accountName: null });
    expect(body).toEqual({ ...OBJECT, textModulesData: [{ id: 'b', header: 'B', body: 'B' }] });
  });

  it('G-15 notifies of changed points three times a day', async () => {
    await insertBoth();
    const loud = { notifyPreference: 'NOTIFY_ON_UPDATE' };
    await patch({ ...loud, ...points('3 / 10') });
    await patch({ ...loud, accountName: 'Anna' });
    await patch(points('4 / 10'));
    expect(google.notifications).toEqual([]);
    for (const n of [5, 6, 7, 8]) {
      expect((await patch({ ...loud, ...points(`${n} / 10`) })).status).toBe(200);
    }
    expect(google.notifications.map(({ text }) => text)).toEqual(['5 / 10', '6 / 10', '7 / 10']);
    expect(google.objects.get(OBJECT.id)).toMatchObject(points('8 / 10'));
    clock += 24 * 3600_000 + 1;
    await patch({ ...loud, ...points('9 / 10') });
    expect(google.notifications.at(-1)?.text).toBe('9 / 10');
    expect(google.objects.get(OBJECT.id)).not.toHaveProperty('notifyPreference');
  });

  it('G-16 refuses a fourth notification in a day with 403, but accepts TEXT messages', async () => {
    await insertBoth();
    for (const id of ['a', 'b', 'c']) expect((await addMessage(message(id))).status).toBe(200);
    expect(await addMessage(message('d'))).toMatchObject({
      status: 403,
      reason: 'QuotaExceededException',
    });
    expect((await addMessage(message('d', 'TEXT'))).status).toBe(200);
    expect(google.notifications).toHaveLength(3);
    await patch({ notifyPreference: 'NOTIFY_ON_UPDATE', ...points('4 / 10') });
    expect(google.notifications.map(({ kind }) => kind)).toEqual([
      'message',
      'message',
      'message',
      'update',
    ]);
  });

  it('G-17 keeps the last ten messages, each id once', async () => {
    await insertBoth();
    for (let i = 0; i < 12; i++) await addMessage(message(String(i), 'TEXT'));
    await addMessage({ ...message('11', 'TEXT'), body: 'Again' });
    const { messages } = google.objects.get(OBJECT.id) as unknown as {
      messages: { id: string; body: string }[];
    };
    expect(messages.map(({ id }) => id)).toEqual([
      '2',
      '3',
      '4',
      '5',
      '6',
      '7',
      '8',
      '9',
      '10',
      '11',
    ]);
    expect(messages.at(-1)?.body).toBe('Again');
    expect((await addMessage({ header: 'No body' })).status).toBe(400);
  });

  it('G-18 accepts save links that the account signed, with valid claims and at most 1,800 characters', async () => {
    await insertBoth();
    const claims = {
      iss: google.account.email,
      aud: 'google',
      typ: 'savetowallet',
      iat: Math.floor(clock / 1000),
      payload: { loyaltyObjects: [{ id: OBJECT.id, classId: CLASS.id }] },
    };
    const save = async (token: string) => (await google.save(`${google.saveUrl}/${token}`)).status;
    for (const wrong of [
      { aud: 'apple' },
      { typ: 'JWT' },
      { iss: 'x@y' },
      { iat: 'now' },
      { payload: {} },
    ]) {
      expect([wrong, await save(jwt({ ...claims, ...wrong }))]).toEqual([wrong, 400]);
    }
    expect(await save(jwt(claims, {}, otherKey()))).toBe(400);
    expect(await save(jwt({ ...claims, more: 'x'.repeat(1200) }))).toBe(414);
    expect(google.saved.size).toBe(0);
    expect(await save(jwt(claims))).toBe(200);
    expect(google.saved).toEqual(new Set([OBJECT.id]));
  });

  it('G-19 inserts new records of a save link, and does not change existing ones', async () => {
    const save = async (payload: object) => {
      const { email: iss } = google.account;
      const iat = Math.floor(clock / 1000);
      const token = jwt({ iss, aud: 'google', typ: 'savetowallet', iat, payload });
      return (await google.save(`${google.saveUrl}/${token}`)).status;
    };
    expect(await save({ loyaltyObjects: [OBJECT] })).toBe(400);
    expect(await save({ loyaltyClasses: [CLASS], loyaltyObjects: [OBJECT] })).toBe(200);
    expect(await save({ loyaltyObjects: [{ ...OBJECT, accountName: 'Anna' }] })).toBe(200);
    expect(google.objects.get(OBJECT.id)).toEqual(OBJECT);
  });

  it('G-20 refuses an end of validity without an offset', async () => {
    await insertBoth();
    const until = (date: string) => patch({ validTimeInterval: { end: { date } } });
    expect((await until('2027-01-31T23:59:59')).status).toBe(400);
    expect((await until('2027-01-31T23:59:59+01:00')).status).toBe(200);
  });

  it('G-21 signs callbacks for this issuer by an intermediate key, and that by a published one', async () => {
    const event = { classId: CLASS.id, objectId: OBJECT.id, eventType: 'save' } as const;
    const fetchKey = async () => {
      const response = await fetch(`${google.origin}/gp/m/issuer/keys`);
      const { keys } = (await response.json()) as { keys: { keyValue: string }[] };
      return keys[0]?.keyValue ?? '';
    };
    const isSigned = async (text: string, recipient: string) => {
      const { signature, intermediateSigningKey, signedMessage, protocolVersion } = JSON.parse(
        text,
      ) as {
        signature: string;
        intermediateSigningKey: { signedKey: string; signatures: string[] };
        signedMessage: string;
        protocolVersion: string;
      };
      const { keyValue } = JSON.parse(intermediateSigningKey.signedKey) as { keyValue: string };
      const [keySignature = ''] = intermediateSigningKey.signatures;
      const sender = 'GooglePayPasses';
      return (
        check(
          await fetchKey(),
          [sender, protocolVersion, intermediateSigningKey.signedKey],
          keySignature,
        ) && check(keyValue, [sender, recipient, protocolVersion, signedMessage], signature)
      );
    };
    expect(await isSigned(google.envelope(event), ISSUER)).toBe(true);
    expect(await isSigned(google.envelope(event), '3388000000022999999')).toBe(false);
    expect(await isSigned(google.envelope(event, { rootless: true }), ISSUER)).toBe(false);
    const before = google.envelope(event);
    google.signer.rotate();
    expect(await isSigned(before, ISSUER)).toBe(false);
  });
});

function check(spki: string, parts: string[], signature: string): boolean {
  const key = createPublicKey({ key: Buffer.from(spki, 'base64'), type: 'spki', format: 'der' });
  const bytes = Buffer.concat(
    parts.flatMap((part) => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(Buffer.byteLength(part));
      return [length, Buffer.from(part)];
    }),
  );
  return verify('sha256', bytes, key, Buffer.from(signature, 'base64'));
}
