import { describe, expect, it } from '@jest/globals';
import { createCipheriv, randomBytes } from 'node:crypto';
import { toPublicEventId } from './public-id.js';
import { deriveKey, fingerprint, open, seal } from './sealing.js';

const key = randomBytes(32);

describe('sealing', () => {
  it('seal gives another result each time, and open reads each', () => {
    const first = seal(key, Buffer.from('Änne'), 'here');
    const two = seal(key, Buffer.from('Änne'), 'here');
    expect(first.equals(two)).toBe(false);
    expect(open(key, first, 'here').toString()).toBe('Änne');
  });

  it('open refuses another context, another key and changed data', () => {
    const ciphertext = seal(key, Buffer.from('secret'), 'here');
    expect(() => open(key, ciphertext, 'there')).toThrow();
    expect(() => open(randomBytes(32), ciphertext, 'here')).toThrow();
    ciphertext[ciphertext.length - 1] = (ciphertext.at(-1) ?? 0) ^ 1;
    expect(() => open(key, ciphertext, 'here')).toThrow();
  });

  it('deriveKey derives a different key for each purpose', () => {
    expect(deriveKey(key, 'claims').equals(deriveKey(key, 'secrets'))).toBe(false);
    expect(deriveKey(key, 'claims').equals(deriveKey(key, 'claims'))).toBe(true);
  });

  it('open reads what earlier versions sealed, with the same key derivation and layout', () => {
    const derivedKey = deriveKey(Buffer.alloc(32, 1), 'claims');
    expect(derivedKey.toString('hex')).toBe(
      'd044e39725321c4abedc921f5d66e6ead9dfe6700becefe2242a79e288400ef2',
    );
    // A nonce of 12 bytes, a tag of 16, and as many bytes as the plain text.
    const cipher = createCipheriv('aes-256-gcm', derivedKey, Buffer.alloc(12, 7));
    cipher.setAAD(Buffer.from('here'));
    const ciphertext = Buffer.concat([cipher.update('Änne'), cipher.final()]);
    const sealedBytes = Buffer.concat([Buffer.alloc(12, 7), cipher.getAuthTag(), ciphertext]);
    expect(open(derivedKey, sealedBytes, 'here').toString()).toBe('Änne');
    expect(seal(derivedKey, Buffer.from('Änne'), 'here')).toHaveLength(sealedBytes.length);
  });

  it('fingerprint differs for parts with the same concatenation', () => {
    expect(fingerprint(key, 'ab', 'c').equals(fingerprint(key, 'a', 'bc'))).toBe(false);
  });
});

describe('toPublicEventId', () => {
  it('returns evt_ and 26 characters, the same for the same event', () => {
    const id = toPublicEventId('01a1f80f-092d-731b-aa2f-ca6f1c723570');
    expect(id).toMatch(/^evt_[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(toPublicEventId('01a1f80f-092d-731b-aa2f-ca6f1c723570')).toBe(id);
    expect(toPublicEventId('00000000-0000-0000-0000-000000000000')).toBe(`evt_${'0'.repeat(26)}`);
    expect(toPublicEventId('ffffffff-ffff-ffff-ffff-ffffffffffff')).toBe(`evt_7${'Z'.repeat(25)}`);
  });
});
