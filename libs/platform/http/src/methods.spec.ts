import { describe, expect, it } from '@jest/globals';
import { RouteTable } from './methods.js';

describe('RouteTable', () => {
  const routes = new RouteTable();
  routes.add('/accounts', 'GET');
  routes.add('/accounts/:id', 'GET');
  routes.add('/accounts/:id', 'PATCH');
  routes.add('/accounts/:id', 'GET');
  routes.add('*', 'OPTIONS');

  it.each([
    ['/accounts', ['GET', 'OPTIONS']],
    ['/accounts/', ['GET', 'OPTIONS']],
    ['/accounts/7', ['GET', 'OPTIONS', 'PATCH']],
    ['/accounts/:id', ['GET', 'OPTIONS', 'PATCH']],
    ['/accounts/7/orders', []],
    ['/accounts//', []],
    ['/', []],
    ['', []],
  ])('finds the methods of %s: %j', (path, methods) =>
    expect(routes.findMethods(path)).toEqual(methods),
  );
});
