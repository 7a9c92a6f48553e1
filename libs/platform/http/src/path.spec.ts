import { describe, expect, it } from '@jest/globals';
import { decodable, loggedPath, pathOf } from './path.js';

describe('pathOf', () => {
  it.each([
    ['/api/v1/accounts?limit=1', '/api/v1/accounts'],
    ['/api/v1/accounts#x?y', '/api/v1/accounts'],
    ['http://cards.example/api/v1/accounts?x', '/api/v1/accounts'],
    ['HTTPS://cards.example:8443/a', '/a'],
    ['http://cards.example', ''],
    ['//cards.example/a', '//cards.example/a'],
    ['*', '*'],
  ])('%s', (target, path) => expect(pathOf(target)).toBe(path));
});

describe('loggedPath', () => {
  const customer = '/api/v1/accounts/:account_id/customers/:id';
  it.each([
    ['/api/v1/accounts/7/customers/31?token=x', customer, '/api/v1/accounts/7/customers/31'],
    ['/api/v1/accounts/7/customers/31/', customer, '/api/v1/accounts/7/customers/31/'],
    ['/api/v1/accounts/7/customers/jo@x.example', customer, '/api/v1/accounts/7/customers/:id'],
    ['/api/v1/accounts/7/customers/jo', customer, '/api/v1/accounts/7/customers/:id'],
    ['/api/v1/accounts/7/customers/4915112345678', customer, '/api/v1/accounts/7/customers/:id'],
    ['/docs/cards_v2.html', '/docs/*', '/docs/*'],
    ['/api/v1/nothing', undefined, '/api/v1/nothing'],
    ['/api/v1/nothing/jo@x.example', '*', '/api/v1/nothing/…'],
    ['/iKp_0a1b2c3d4e', undefined, '/…'],
    ['', undefined, ''],
  ])('%s', (target, pattern, shown) => expect(loggedPath(target, pattern)).toBe(shown));
});

describe('decodable', () => {
  it.each([
    ['/a%20b?c=%', '/a%20b?c=%'],
    ['/a%2Fb', '/a%2Fb'],
    ['/a%', '/a%25'],
    ['/a%00b?c=%00', '/a%2500b?c=%00'],
    ['/%E0%A4%A/%20?q=%zz', '/%25E0%25A4%25A/%2520?q=%zz'],
  ])('%s', (target, made) => {
    expect(decodable(target)).toBe(made);
    expect(() => decodeURI(pathOf(made))).not.toThrow();
  });
});
