import { describe, expect, it } from '@jest/globals';
import { toDecodableTarget, getLoggablePath, getPath } from './path.js';

describe('getPath', () => {
  it.each([
    ['/api/v1/accounts?limit=1', '/api/v1/accounts'],
    ['/api/v1/accounts#x?y', '/api/v1/accounts'],
    ['http://orders.example/api/v1/accounts?x', '/api/v1/accounts'],
    ['HTTPS://orders.example:8443/a', '/a'],
    ['http://orders.example', ''],
    ['//orders.example/a', '//orders.example/a'],
    ['*', '*'],
  ])('reduces %s to %s', (target, path) => expect(getPath(target)).toBe(path));
});

describe('getLoggablePath', () => {
  const order = '/api/v1/accounts/:account_id/orders/:id';
  it.each([
    ['/api/v1/accounts/7/orders/31?token=x', order, '/api/v1/accounts/7/orders/31'],
    ['/api/v1/accounts/7/orders/31/', order, '/api/v1/accounts/7/orders/31/'],
    ['/api/v1/accounts/7/orders/jo@x.example', order, '/api/v1/accounts/7/orders/:id'],
    ['/api/v1/accounts/7/orders/jo', order, '/api/v1/accounts/7/orders/:id'],
    ['/api/v1/accounts/7/orders/4915112345678', order, '/api/v1/accounts/7/orders/:id'],
    ['/docs/orders_v2.html', '/docs/*', '/docs/*'],
    ['/api/v1/nothing', undefined, '/api/v1/nothing'],
    ['/api/v1/nothing/jo@x.example', '*', '/api/v1/nothing/…'],
    ['/iKp_0a1b2c3d4e', undefined, '/…'],
    ['', undefined, ''],
  ])('renders %j on the route %j as %j', (target, pattern, loggable) =>
    expect(getLoggablePath(target, pattern)).toBe(loggable),
  );
});

describe('toDecodableTarget', () => {
  it.each([
    ['/a%20b?c=%', '/a%20b?c=%'],
    ['/a%2Fb', '/a%2Fb'],
    ['/a%', '/a%25'],
    ['/a%00b?c=%00', '/a%2500b?c=%00'],
    ['/%E0%A4%A/%20?q=%zz', '/%25E0%25A4%25A/%2520?q=%zz'],
  ])('turns %s into %s', (target, decodable) => {
    expect(toDecodableTarget(target)).toBe(decodable);
    expect(() => decodeURI(getPath(decodable))).not.toThrow();
  });
});
