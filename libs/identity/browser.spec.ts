import { describe, expect, it } from '@jest/globals';
import { parseBrowser } from './browser.js';

const WEBKIT = 'AppleWebKit/605.1.15 (KHTML, like Gecko)';
const CHROME = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0';

describe('parseBrowser', () => {
  it.each([
    [
      `Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) ${WEBKIT} Version/18.1 Mobile/15E148 Safari/604.1`,
      'Safari',
      'iPhone',
    ],
    [
      `Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) ${WEBKIT} CriOS/131.0 Mobile/15E148 Safari/604.1`,
      'Chrome',
      'iPhone',
    ],
    [`Mozilla/5.0 (Linux; Android 15) ${CHROME} Mobile Safari/537.36`, 'Chrome', 'Android'],
    [
      `Mozilla/5.0 (Linux; Android 15) ${CHROME.replace('Chrome', 'SamsungBrowser/27.0 Chrome')} Mobile Safari/537.36`,
      'Samsung Internet',
      'Android',
    ],
    [
      `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${CHROME} Safari/537.36 Edg/131.0`,
      'Edge',
      'Windows',
    ],
    [
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:133.0) Gecko/20100101 Firefox/133.0',
      'Firefox',
      'Mac',
    ],
    [
      'Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0',
      'Firefox',
      'Linux',
    ],
  ])('recognizes %s', (userAgent, name, system) => {
    expect(parseBrowser(userAgent)).toEqual({ name, system });
  });

  it('keeps nothing of what it does not recognize', () => {
    for (const userAgent of [undefined, '', 'curl/8.5.0', '<script>Chrome/1', 'x'.repeat(10_000)]) {
      expect(parseBrowser(userAgent)).toBeNull();
    }
  });
});
