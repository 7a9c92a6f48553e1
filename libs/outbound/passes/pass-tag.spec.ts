import { describe, expect, it } from '@jest/globals';
import { parseTag } from './pass-tag.js';

describe('parseTag', () => {
  it('parses up to 15 digits, and returns null for anything else', () => {
    expect(['0', '7', '123456789012345'].map(parseTag)).toEqual([0, 7, 123456789012345]);
    const others = [
      undefined,
      null,
      7,
      ['7'],
      '',
      ' ',
      '-1',
      '+7',
      '1e3',
      '0x1f',
      '7.5',
      '7 ',
      '٧',
    ];
    for (const otherValue of [...others, '1234567890123456'])
      expect(parseTag(otherValue)).toBeNull();
  });
});
