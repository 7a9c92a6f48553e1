import { describe, expect, it } from '@jest/globals';
import { isProxyException, parseProxyExceptions } from './host-lists.js';

const isException = (list: string, host: string): boolean => {
  const exceptions = parseProxyExceptions(list);
  if (!exceptions) throw new Error(`${list} is not valid`);
  return isProxyException(host, exceptions);
};

describe('the hosts that are reached without the outgoing proxy', () => {
  it.each([
    ['shop.example', 'shop.example', true],
    ['shop.example', 'Mail.Shop.Example.', true],
    ['shop.example', 'workshop.example', false],
    ['.shop.example', 'mail.shop.example', true],
    ['.shop.example', 'shop.example', false],
    ['mail', 'mail', true],
    ['192.0.2.7', '192.0.2.7', true],
    ['192.0.2.7', '192.0.2.8', false],
    ['10.0.0.0/8, fd12::/48', 'fd12::7', true],
    ['10.0.0.0/8', '::ffff:10.1.2.3', true],
    ['2001:db8::1', '2001:db8::1', true],
    ['a.example,b.example', 'b.example', true],
  ])('%s has the host %s: %s', (list, host, expected) => {
    expect(isException(list, host)).toBe(expected);
  });

  it.each(['*', '*.shop.example', 'mail:25', 'https://shop.example', '10.0.0.0/99', '10.0.0', ','])(
    'cannot be %s',
    (list) => {
      expect(parseProxyExceptions(list)).toBeUndefined();
    },
  );
});
