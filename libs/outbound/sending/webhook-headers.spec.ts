import { describe, expect, it } from '@jest/globals';
import { findHeadersIssue, hideHeaderValues, hideValuesIn } from './webhook-headers.js';

describe('findHeadersIssue', () => {
  it.each([
    [{}],
    [{ 'X-Api-Key': 'a' }],
    [{ Authorization: 'Bearer abc.def_ghi' }],
    [{ X_Tenant: '~!"#$%&\\' }],
    [{ 'X-A': 'x'.repeat(1024), ['x'.repeat(64)]: 'y' }],
    [Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`X-${i}`, 'v']))],
  ])('accepts %j', (headers) => {
    expect(findHeadersIssue(headers, false)?.message).toBeUndefined();
  });

  it.each([
    ['eleven', Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`X-${i}`, 'v']))],
    ['an empty name', { '': 'v' }],
    ['a name with a space', { 'X A': 'v' }],
    ['a name with a colon', { 'X:': 'v' }],
    ['a name that begins with a digit', { '1X': 'v' }],
    ['a pseudo-header', { ':path': 'v' }],
    ['a name with a line break', { 'X\r\nY': 'v' }],
    ['a name that is too long', { ['x'.repeat(65)]: 'v' }],
    ['names that differ in case alone', { 'X-A': 'v', 'x-a': 'v' }],
    ['an empty value', { 'X-A': '' }],
    ['a value with a line break', { 'X-A': 'a\r\nX-B: b' }],
    ['a value with a line feed', { 'X-A': 'a\n' }],
    ['a value with NUL', { 'X-A': 'a\0b' }],
    ['a value with a tab', { 'X-A': 'a\tb' }],
    ['a value with an umlaut', { 'X-A': 'ä' }],
    ['a value that ends with a space', { 'X-A': 'a ' }],
    ['a value that is too long', { 'X-A': 'x'.repeat(1025) }],
    ['a number', { 'X-A': 1 }],
    ['null', { 'X-A': null }],
    ['a list', { 'X-A': ['a'] }],
    ['a hidden value', { 'X-A': '•••' }],
  ])('refuses %s', (_case, headers) => {
    expect(findHeadersIssue(headers, false)?.message).toEqual(expect.any(String));
  });

  it.each(
    'Host CONNECTION Keep-Alive TE Trailer Transfer-Encoding Upgrade Proxy-Authorization Proxy-Anything Content-Type Content-Length Content-Encoding webhook-id Webhook-Signature WEBHOOK-OTHER User-Agent Service-Event WWW-Authenticate Expect'.split(
      ' ',
    ),
  )('refuses the reserved name %s', (name) => {
    expect(findHeadersIssue({ [name]: 'v' }, false)?.message).toBe(`${name} cannot be set`);
    expect(findHeadersIssue({ [name]: '•••' }, true)?.message).toBe(`${name} cannot be set`);
  });

  it('accepts a hidden value in an update, and names no value in an error', () => {
    expect(findHeadersIssue({ 'X-A': '•••' }, true)?.message).toBeUndefined();
    expect(findHeadersIssue({ 'X-A': 'secret\n' }, true)?.message).not.toContain('secret');
  });
});

it('hideHeaderValues shows names alone', () => {
  expect(hideHeaderValues(['X-A', 'B'])).toEqual({ 'X-A': '•••', B: '•••' });
});

describe('hideValuesIn', () => {
  const headers = {
    'X-Key': 'k3y-"quoted"',
    Authorization: 'Bearer token-of-the-store',
    'X-N': '7',
  };

  it.each([
    ['a value', 'got k3y-"quoted"!', 'got •••!'],
    ['a value in JSON', JSON.stringify({ k: 'k3y-"quoted"' }), '{"k":"•••"}'],
    ['a token without its scheme', 'token-of-the-store is unknown', '••• is unknown'],
    ['nothing of another text', '7 keys, no Bearer', '7 keys, no Bearer'],
  ])('hides %s', (_case, text, hidden) => {
    expect(hideValuesIn(text, headers, false)).toBe(hidden);
  });

  it.each([
    ['a value', 'your header: Bearer token-of-th', 'your header: •••'],
    ['a token', '{"token":"token-of-', '{"token":"•••'],
  ])('hides the beginning of %s at the end of a text that is cut', (_case, text, hidden) => {
    expect(hideValuesIn(text, headers, true)).toBe(hidden);
    expect(hideValuesIn(text, headers, false)).toBe(text);
  });

  it('hides every beginning of a value at the end of a text that is cut, down to its first byte', () => {
    const value = 'k3y-"quoted"';
    for (let length = 1; length <= value.length; length++)
      for (const end of [value, JSON.stringify(value).slice(1, -1)])
        expect(hideValuesIn(`got ${end.slice(0, length)}`, headers, true)).toBe('got •••');
  });

  it('shows nothing of values that overlap, also where the text is cut within the second', () => {
    const overlapping = { 'X-A': 'abcdabcd', 'X-B': 'abcd-efg' };
    expect(hideValuesIn('1 abcdabcdabcd 2', overlapping, false)).toBe('1 ••• 2');
    expect(hideValuesIn('1 abcdabcdab', overlapping, true)).toBe('1 •••');
    expect(hideValuesIn('1 abcdabcd-ef', overlapping, true)).toBe('1 •••');
  });
});
