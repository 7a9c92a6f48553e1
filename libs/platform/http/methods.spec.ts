import { describe, expect, it } from '@jest/globals';
import { RouteTable } from './methods.js';

describe('RouteTable', () => {
  const routes = new RouteTable();
  routes.add('/accounts', 'GET');
  routes.add('/accounts/:id', 'GET');
  routes.add('/accounts/:id', 'PATCH');
  routes.add('/accounts/:id', 'GET');
  routes.add('/accounts/preview', 'POST');
  routes.add('*', 'OPTIONS');

  it.each([
    ['/accounts', ['GET', 'OPTIONS']],
    ['/accounts/', ['GET', 'OPTIONS']],
    ['/accounts/7', ['GET', 'OPTIONS', 'PATCH']],
    ['/accounts/preview', ['OPTIONS', 'POST']],
    ['/accounts/:id', ['GET', 'OPTIONS', 'PATCH']],
    ['/accounts/7/orders', []],
    ['/accounts//', []],
    ['/', []],
    ['', []],
  ])('finds the methods of %s: %j', (path, methods) =>
    expect(routes.findMethods(path)).toEqual(methods),
  );

  it('tells which patterns share paths with a more specific one', () => {
    expect(routes.isAmbiguous('/accounts/:id')).toBe(true);
    expect(routes.isAmbiguous('/accounts/preview')).toBe(false);
    expect(routes.isAmbiguous('/accounts')).toBe(false);
  });
});
