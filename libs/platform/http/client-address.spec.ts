import { describe, expect, it } from '@jest/globals';
import { isUnencrypted } from './client-address.js';

const PUBLIC = 'https://service.example';

describe('isUnencrypted', () => {
  it.each<[string | string[] | undefined, number, string, boolean]>([
    ['http', 1, PUBLIC, true],
    ['HTTP', 1, PUBLIC, true],
    ['https', 1, PUBLIC, false],
    [undefined, 1, PUBLIC, false],
    ['http', 0, PUBLIC, false],
    ['http', 1, 'http://service.example', false],
    // A caller wrote the first, the proxy the last.
    ['https, http', 1, PUBLIC, true],
    ['http, https', 1, PUBLIC, false],
    ['http,https', 1, PUBLIC, false],
    // TLS ends at the outer one of two proxies.
    ['https, http', 2, PUBLIC, false],
    ['http, http', 2, PUBLIC, true],
    ['https, http, http', 2, PUBLIC, true],
    // The inner one passes on what the outer one wrote.
    ['https', 2, PUBLIC, false],
    ['http', 2, PUBLIC, true],
    [['https', 'http'], 1, PUBLIC, true],
    ['', 1, PUBLIC, false],
  ])('of %j behind %i proxies at %s is %s', (proto, trustProxyHops, publicUrl, expected) => {
    const headers = proto === undefined ? {} : { 'x-forwarded-proto': proto };
    expect(isUnencrypted(headers as Record<string, string>, { publicUrl, trustProxyHops })).toBe(
      expected,
    );
  });
});
