import { describe, expect, it } from '@jest/globals';
import { KnownRoutes } from './methods.js';

describe('the methods of a path', () => {
  const known = new KnownRoutes();
  known.add('/accounts', 'GET');
  known.add('/accounts/:id', 'GET');
  known.add('/accounts/:id', 'PATCH');
  known.add('/accounts/:id', 'GET');
  known.add('*', 'OPTIONS');

  it.each([
    ['/accounts', ['GET', 'OPTIONS']],
    ['/accounts/', ['GET', 'OPTIONS']],
    ['/accounts/7', ['GET', 'OPTIONS', 'PATCH']],
    ['/accounts/:id', ['GET', 'OPTIONS', 'PATCH']],
    ['/accounts/7/orders', []],
    ['/accounts//', []],
    ['/', []],
    ['', []],
  ])('%s', (path, methods) => expect(known.methodsOf(path)).toEqual(methods));
});
