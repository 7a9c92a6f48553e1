import { describe, expect, it } from '@jest/globals';
import { parsePhoneLog } from './passkit.js';

const parseLine = (text: unknown) => parsePhoneLog({ logs: [text] })[0]?.text;

describe('parsePhoneLog', () => {
  it.each([
    [
      'a time, which stays',
      '[2026-11-26 10:00:00 +0100] Get serial #s task',
      '[2026-11-26 10:00:00 +0100] Get serial #s task',
    ],
    ['an e-mail address', 'from Kim.Lee+till@x.example: no', 'from …: no'],
    ['an e-mail address in brackets', '<kim@x.example>', '<…>'],
    ['a phone number', 'call +49 151 1234-5678 now', 'call … now'],
    ['digits', 'call 015112345678', 'call …'],
    ['a serial number', 'pass 0e3bf3e9-2f52-4d33-9c1e-4f3f5c9be4c2!', 'pass …!'],
    ['a device', `device ${'a1'.repeat(16)}`, 'device …'],
    ['line breaks', 'a\r\nERROR b\u2028c', 'a ERROR b c'],
    ['a long line', 'ab '.repeat(400), 'ab '.repeat(400).slice(0, 500)],
  ])('removes what could be personal from a line with %s', (_, text, line) => {
    expect(parseLine(text)).toBe(line);
  });

  it('returns the identifiers in a line, and no lines for an invalid body', () => {
    const [logLine] = parsePhoneLog({ logs: [`device ${'a1'.repeat(16)} failed`] });
    expect(logLine?.identifiers).toEqual(['a1'.repeat(16)]);
    expect([
      parsePhoneLog(null),
      parsePhoneLog({ logs: 'x' }),
      parsePhoneLog({ logs: [1] }),
    ]).toEqual([[], [], []]);
  });
});
