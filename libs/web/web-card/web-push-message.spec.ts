import { describe, expect, it } from '@jest/globals';
import { verify, createPublicKey } from 'node:crypto';
import { createAuthorization, encryptMessage, createKeyPair } from './web-push-message.js';

const bytes = (text: string) => Buffer.from(text, 'base64url');

describe('encryptMessage', () => {
  it('creates the example of RFC 8291, section 5', () => {
    const own = createKeyPair(bytes('yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw'));
    expect(own.publicKey.toString('base64url')).toBe(
      'BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8',
    );
    const message = encryptMessage(
      Buffer.from('When I grow up, I want to be a watermelon'),
      {
        p256dh: bytes(
          'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
        ),
        auth: bytes('BTBZMqHH6r4Tts7J_aSIgg'),
      },
      own,
      bytes('DGv6ra1nlYgDCS1FRnbzlw'),
    );
    expect(message.toString('base64url')).toBe(
      'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
    );
  });
});

describe('createAuthorization', () => {
  it('signs with the key that it names, for one push service and half a day', async () => {
    const own = createKeyPair(Buffer.alloc(32, 9));
    const now = new Date('2026-11-21T12:00:00.500Z');
    const header = await createAuthorization(
      'https://push.example/send/1?x',
      own,
      'https://me.example',
      now,
    );
    const [, head = '', claims = '', signature = '', k = ''] =
      /^vapid t=([\w-]+)\.([\w-]+)\.([\w-]+), k=([\w-]+)$/.exec(header) ?? [];
    expect(JSON.parse(bytes(head).toString())).toEqual({ typ: 'JWT', alg: 'ES256' });
    expect(JSON.parse(bytes(claims).toString())).toEqual({
      aud: 'https://push.example',
      exp: Date.parse('2026-11-22T00:00:00Z') / 1000,
      sub: 'https://me.example',
    });
    const point = bytes(k);
    expect(point).toEqual(own.publicKey);
    const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) =>
      part.toString('base64url'),
    );
    const key = createPublicKey({
      format: 'jwk',
      key: { kty: 'EC', crv: 'P-256', x: x ?? '', y: y ?? '' },
    });
    const signedPart = Buffer.from(`${head}.${claims}`);
    expect(verify('sha256', signedPart, { key, dsaEncoding: 'ieee-p1363' }, bytes(signature))).toBe(
      true,
    );
  });
});
