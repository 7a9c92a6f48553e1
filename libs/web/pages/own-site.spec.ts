import { describe, expect, it } from '@jest/globals';
import type { FastifyRequest } from 'fastify';
import { parseReturnPath, assertOwnSite } from './own-site.js';

const PUBLIC_URL = 'https://cards.example/loyalty';

function isAccepted(headers: Record<string, string>): boolean {
  try {
    assertOwnSite({ headers } as unknown as FastifyRequest, PUBLIC_URL);
    return true;
  } catch {
    return false;
  }
}

describe('assertOwnSite', () => {
  it('accepts forms only from pages of this service', () => {
    const origin = 'https://cards.example';
    expect(isAccepted({ origin })).toBe(true);
    expect(isAccepted({ origin, 'sec-fetch-site': 'same-origin' })).toBe(true);
    for (const site of ['cross-site', 'same-site', 'none']) {
      expect([site, isAccepted({ origin, 'sec-fetch-site': site })]).toEqual([site, false]);
    }
    for (const site of ['https://evil.example', 'http://cards.example', 'null', '']) {
      expect([site, isAccepted({ origin: site })]).toEqual([site, false]);
    }
    expect(isAccepted({})).toBe(false);
  });
});

describe('parseReturnPath', () => {
  it.each(['/app', '/app/stores/7', '/app/stores/7/tokens?after=3&q=a%20b'])(
    'accepts a page of the console: %s',
    (path) => expect(parseReturnPath(path)).toBe(path),
  );

  it.each([
    undefined,
    '',
    'https://evil.example/app',
    '//evil.example/app',
    '/\\evil.example',
    '/app\\..\\..\\evil',
    '/app/../api/v1/status',
    '/app/%2e%2e/docs',
    '/apple',
    '/app/\r\nset-cookie: a=b',
    '/app/\u0000',
    'javascript:alert(1)',
    '/app/ü',
  ])('replaces %j by the start page of the console', (path) =>
    expect(parseReturnPath(path)).toBe('/app'),
  );
});
