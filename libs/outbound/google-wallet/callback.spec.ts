import { describe, expect, it } from '@jest/globals';
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { parseRootKeys, verifyCallback } from './callback.js';

const PROTOCOL = 'ECv2SigningOnly';
const ISSUER = '3388000000022000000';
const NOW = new Date('2026-03-01T10:00:00Z');
const LATER = NOW.getTime() + 3600_000;

const pair = (namedCurve = 'P-256') => generateKeyPairSync('ec', { namedCurve });
const spki = (key: KeyObject) => key.export({ type: 'spki', format: 'der' }).toString('base64');
const [root, otherPair, intermediate] = [pair(), pair(), pair()];

function signParts(key: KeyObject, parts: string[]): string {
  const bytes = parts.map((part) => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(Buffer.byteLength(part));
    return Buffer.concat([length, Buffer.from(part)]);
  });
  return sign('sha256', Buffer.concat(bytes), key).toString('base64');
}

const publishedKeys = (change: object = {}, key = root) => ({
  keys: [
    {
      keyValue: spki(key.publicKey),
      protocolVersion: PROTOCOL,
      keyExpiration: String(LATER),
      ...change,
    },
  ],
});
const ROOTS = parseRootKeys(publishedKeys());

function envelope(
  message: object = {},
  {
    sender = 'GooglePayPasses',
    issuer = ISSUER,
    by: signer = root,
    expires = LATER,
    own: intermediatePair = intermediate,
  } = {},
) {
  const signedKey = JSON.stringify({
    keyValue: spki(intermediatePair.publicKey),
    keyExpiration: String(expires),
  });
  const signedMessage = JSON.stringify({
    classId: `${ISSUER}.card_1`,
    objectId: `${ISSUER}.cc_1`,
    eventType: 'save',
    expTimeMillis: LATER,
    count: 1,
    nonce: 'n1',
    ...message,
  });
  return {
    signature: signParts(intermediatePair.privateKey, [sender, issuer, PROTOCOL, signedMessage]),
    intermediateSigningKey: {
      signedKey,
      signatures: [signParts(signer.privateKey, [sender, PROTOCOL, signedKey])],
    },
    protocolVersion: PROTOCOL,
    signedMessage,
  };
}

const verify = (body: unknown, roots = ROOTS, now = NOW) =>
  verifyCallback(body, roots, ISSUER, now);

describe('verifyCallback', () => {
  it('accepts a callback that Google has signed for this issuer', () => {
    expect(verify(envelope())).toEqual({
      objectId: `${ISSUER}.cc_1`,
      eventType: 'save',
      nonce: 'n1',
      expiresAt: new Date(LATER),
    });
    expect(verify(envelope({ eventType: 'del' }))?.eventType).toBe('del');
    expect(verify(envelope({}, { sender: 'GoogleWalletPasses' }))).toBeDefined();
  });

  it('accepts a callback when one of several root keys and signatures fits', () => {
    const both = [...parseRootKeys(publishedKeys({}, otherPair)), ...ROOTS];
    const twice = envelope();
    twice.intermediateSigningKey.signatures.unshift('AAAA');
    expect(verify(twice, both)).toBeDefined();
  });

  it.each<[string, unknown]>([
    ['for another issuer', envelope({}, { issuer: '3388000000022999999' })],
    ['of another sender', envelope({}, { sender: 'GoogleAds' })],
    ['by an unknown key', envelope({}, { by: otherPair })],
    ['by an intermediate key that has expired', envelope({}, { expires: NOW.getTime() })],
    ['by a key of another curve', envelope({}, { own: pair('P-384') })],
    ['that has expired', envelope({ expTimeMillis: NOW.getTime() })],
    ['of an unknown event type', envelope({ eventType: 'view' })],
    ['without a nonce', envelope({ nonce: undefined })],
    ['with a nonce that is too long', envelope({ nonce: 'n'.repeat(300) })],
    ['without an expiry', envelope({ expTimeMillis: undefined })],
    ['without an object', envelope({ objectId: 7 })],
    [
      'with another message',
      { ...envelope(), signedMessage: envelope({ nonce: 'n2' }).signedMessage },
    ],
    [
      'with another key',
      {
        ...envelope(),
        intermediateSigningKey: envelope({}, { own: otherPair }).intermediateSigningKey,
      },
    ],
    ['of another protocol', { ...envelope(), protocolVersion: 'ECv1' }],
    [
      'without signatures',
      { ...envelope(), intermediateSigningKey: { signedKey: '{}', signatures: [] } },
    ],
    ['with an invalid signature', { ...envelope(), signature: 'AAAA' }],
    ['that is a string', 'save'],
    ['that is null', null],
    ['that is a list', []],
  ])('refuses a callback %s', (_, body) => {
    expect(verify(body)).toBeUndefined();
  });

  it('refuses a callback when the root key has expired', () => {
    expect(
      verify(
        envelope({ expTimeMillis: LATER * 2 }, { expires: LATER * 2 }),
        ROOTS,
        new Date(LATER),
      ),
    ).toBeUndefined();
  });
});

describe('parseRootKeys', () => {
  it('skips keys of other protocols and keys that cannot be used', () => {
    for (const change of [
      { protocolVersion: 'ECv1' },
      { keyValue: 'AAAA' },
      { keyValue: spki(pair('P-384').publicKey) },
      { keyExpiration: 'never' },
    ]) {
      expect([change, parseRootKeys(publishedKeys(change)).length]).toEqual([change, 0]);
    }
    expect(parseRootKeys({})).toEqual([]);
    expect(parseRootKeys('keys')).toEqual([]);
  });
});
