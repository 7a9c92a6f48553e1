import { describe, expect, it } from '@jest/globals';
import { defineIssues, listTextsByCode, renderMessages } from './issues.js';

const TEXTS = {
  too_long: 'must have at most {max, number} characters',
  name_too_long: ['too_long', 'is longer than {max, number} characters'],
  blank: 'must not be blank',
} as const;
const ISSUES = defineIssues(TEXTS);

describe('defineIssues', () => {
  it('fills in the parameters of a message', () => {
    expect(ISSUES.too_long({ max: 255 })).toEqual({
      code: 'too_long',
      params: { max: 255 },
      message: 'must have at most 255 characters',
    });
    expect(ISSUES.blank).toEqual({ code: 'blank', params: {}, message: 'must not be blank' });
  });

  it('gives messages that differ in their words the same code', () => {
    expect(ISSUES.name_too_long({ max: 9 })).toEqual({
      code: 'too_long',
      params: { max: 9 },
      message: 'is longer than 9 characters',
    });
  });
});

it('listTextsByCode lists every text of a code', () => {
  expect([...listTextsByCode(TEXTS)]).toEqual([
    ['too_long', [TEXTS.too_long, TEXTS.name_too_long[1]]],
    ['blank', [TEXTS.blank]],
  ]);
});

it('renderMessages names the field of each message', () => {
  const issues = { base: [ISSUES.blank], name: [ISSUES.blank, ISSUES.too_long({ max: 3 })] };
  expect(renderMessages(issues)).toBe(
    'must not be blank; name must not be blank; name must have at most 3 characters',
  );
});
