import { describe, expect, it } from '@jest/globals';
import { findPinIssue, normalizePin } from './counter-pin.js';

describe('the PIN of a member', () => {
  it.each(['4071', '80352', '259047', '4826', '1470'])('may be %s', (pin) => {
    expect(findPinIssue(pin)?.message).toBeUndefined();
  });

  it.each(['', '407', '4071852', '40a1', '-407', '４０７１'])(
    'must be 4 to 6 digits, unlike %p',
    (pin) => {
      expect(findPinIssue(pin)?.message).toMatch('must be 4 to 6 digits');
    },
  );

  it.each(['0000', '777777', '4747', '123123', '1234', '456789', '9876', '8901', '2468'])(
    'is not %s, which others would try first',
    (pin) => {
      expect(findPinIssue(pin)?.message).toMatch('too easy to guess');
    },
  );

  it('may be typed in digits of any script, with spaces', () => {
    expect(normalizePin(' 40 71 ')).toBe('4071');
    expect(normalizePin('٤٠٧١')).toBe('4071');
    expect(normalizePin('４０７１')).toBe('4071');
  });
});
