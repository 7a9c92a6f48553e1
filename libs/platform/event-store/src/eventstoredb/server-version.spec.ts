import { describe, expect, it } from '@jest/globals';
import { findVersionWarning, parseServerInfo } from './server-version.js';

describe('parseServerInfo', () => {
  it.each([
    [
      { dbVersion: '26.0.3', state: 'leader' },
      { product: 'KurrentDB', version: '26.0.3' },
    ],
    [{ esVersion: '23.10.6.0' }, { product: 'EventStoreDB', version: '23.10.6.0' }],
    [{ esVersion: 7 }, undefined],
    [null, undefined],
  ])('parses %j', (info, expected) => {
    expect(parseServerInfo(info)).toEqual(expected);
  });
});

describe('findVersionWarning', () => {
  it.each(['23.10.6.0', '24.10.14'])('has nothing against EventStoreDB %s', (version) => {
    expect(findVersionWarning({ product: 'EventStoreDB', version })).toBeUndefined();
  });

  it.each(['25.1.0', '26.0.3'])('has nothing against KurrentDB %s', (version) => {
    expect(findVersionWarning({ product: 'KurrentDB', version })).toBeUndefined();
  });

  it.each([
    { product: 'EventStoreDB', version: '22.10.1' },
    { product: 'EventStoreDB', version: '24.6.0' },
    { product: 'KurrentDB', version: '27.0.0' },
  ] as const)('warns of $product $version', (server) => {
    expect(findVersionWarning(server)).toBe(
      `${server.product} ${server.version} is not supported: use EventStoreDB 23.10 or 24.10, or KurrentDB 25 or 26`,
    );
  });
});
