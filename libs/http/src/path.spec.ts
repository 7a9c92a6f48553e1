import { describe, expect, it } from '@jest/globals';
import { decodable, pathOf } from './path.js';

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

describe('decodable', () => {
  it.each([
    ['/a%20b?c=%', '/a%20b?c=%'],
    ['/a%2Fb', '/a%2Fb'],
    ['/a%', '/a%25'],
    ['/%E0%A4%A/%20?q=%zz', '/%25E0%25A4%25A/%2520?q=%zz'],
  ])('%s', (target, made) => {
    expect(decodable(target)).toBe(made);
    expect(() => decodeURI(pathOf(made))).not.toThrow();
  });
});
