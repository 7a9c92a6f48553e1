import { describe, expect, it } from '@jest/globals';
import { renderSecurityTxt } from './security-txt.controller.js';

describe('renderSecurityTxt', () => {
  it('contains the required fields of RFC 9116, one per line', () => {
    const text = renderSecurityTxt(
      'mailto:security@shop.example',
      'https://cards.example',
      new Date('2026-11-26T00:00:00Z'),
    );
    expect(text).toBe(
      [
        'Contact: mailto:security@shop.example',
        'Expires: 2027-02-24T00:00:00.000Z',
        'Preferred-Languages: en',
        'Canonical: https://cards.example/.well-known/security.txt',
        '',
      ].join('\n'),
    );
  });
});
