import { describe, expect, it } from '@jest/globals';
import {
  parseRecoveryCode,
  createEnrolmentUri,
  RECOVERY_BYTES,
  toRecoveryCodes,
  renderSecret,
  findStepOfCode,
} from './second-factor.js';

/** The secret of RFC 6238, appendix B. The codes are the last six of its eight digits. */
const SECRET = Buffer.from('12345678901234567890');
const at = (seconds: number) => new Date(seconds * 1000);

describe('a code of the second factor', () => {
  it.each([
    [59, '287082'],
    [1_111_111_109, '081804'],
    [1_111_111_111, '050471'],
    [1_234_567_890, '005924'],
    [2_000_000_000, '279037'],
    [20_000_000_000, '353130'],
  ])('at %i s is %s, as in RFC 6238', (seconds, code) => {
    expect(findStepOfCode(SECRET, code, 0, at(seconds))).toBe(Math.floor(seconds / 30));
  });

  it('is accepted one step early and one step late, but not two', () => {
    const step = Math.floor(1_111_111_109 / 30);
    for (const [later, expected] of [
      [-30, step],
      [30, step],
      [-60, undefined],
      [60, undefined],
    ] as const) {
      const now = at(1_111_111_109 + later);
      expect([later, findStepOfCode(SECRET, '081 804', 0, now)]).toEqual([later, expected]);
    }
  });

  it('is accepted once, and no earlier code is accepted after it', () => {
    const step = Math.floor(1_111_111_109 / 30);
    expect(findStepOfCode(SECRET, '081804', step - 1, at(1_111_111_109))).toBe(step);
    expect(findStepOfCode(SECRET, '081804', step, at(1_111_111_109))).toBeUndefined();
    expect(findStepOfCode(SECRET, '081804', step + 1, at(1_111_111_109))).toBeUndefined();
  });

  it.each(['', '28708', '2870822', '287o82', '②８７０８２', '-87082'])('cannot be %j', (code) =>
    expect(findStepOfCode(SECRET, code, 0, at(59))).toBeUndefined(),
  );

  it.each(['２８７０８２', '٢٨٧ ٠٨٢', '\u200E287082\u200E', '287\u00A0082\r'])(
    'may be typed as %j',
    (code) => expect(findStepOfCode(SECRET, code, 0, at(59))).toBe(1),
  );

  it('comes from a secret that is shown in base 32 and as an otpauth URI', () => {
    expect(renderSecret(SECRET)).toBe('GEZD GNBV GY3T QOJQ GEZD GNBV GY3T QOJQ');
    expect(createEnrolmentUri(SECRET, 'grace@shop.example')).toBe(
      'otpauth://totp/Inkpad:grace%40shop.example?issuer=Inkpad&secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&algorithm=SHA1&digits=6&period=30',
    );
  });
});

describe('a recovery code', () => {
  const codes = toRecoveryCodes(Buffer.from(Array.from({ length: RECOVERY_BYTES }, (_, i) => i)));

  it('is one of ten different codes', () => {
    expect(new Set(codes).size).toBe(10);
    for (const code of codes) expect(code).toMatch(/^([a-z2-7]{4} ){3}[a-z2-7]{4}$/);
  });

  it('is recognized in any spacing and case', () => {
    const [code = ''] = codes;
    const plain = code.replaceAll(' ', '');
    for (const input of [code, plain, ` ${code.toUpperCase().replaceAll(' ', '-')} `]) {
      expect(parseRecoveryCode(input)).toBe(plain);
    }
  });

  it.each([
    '',
    '123456',
    '12 34 56',
    'abcd efgh ijkl mno',
    'abcd efgh ijkl mnop q',
    '0bcd efgh ijkl mnop',
  ])('cannot be %j', (text) => expect(parseRecoveryCode(text)).toBeUndefined());
});
