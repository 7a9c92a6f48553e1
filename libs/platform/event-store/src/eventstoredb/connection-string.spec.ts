import { describe, expect, it } from '@jest/globals';
import { parseConnectionString, renameProtocol } from './connection-string.js';

describe('renameProtocol', () => {
  it.each([
    ['kurrentdb://n1:2113', 'esdb://n1:2113'],
    ['kurrentdb+discover://n1', 'esdb+discover://n1'],
    ['kdb://n1', 'esdb://n1'],
    [' kdb+discover://n1', 'esdb+discover://n1'],
    ['esdb://kdb:kdb@kurrentdb:2113', 'esdb://kdb:kdb@kurrentdb:2113'],
  ])('turns %s into %s', (url, expected) => {
    expect(renameProtocol(url)).toBe(expected);
  });
});

describe('parseConnectionString', () => {
  it('parses the name, the password, each host and the authority', () => {
    expect(parseConnectionString('kdb://ink%40pad:s%3Acret@n1,n2:3000?tlsCAFile=ca.crt')).toEqual({
      credentials: { name: 'ink@pad', password: 's:cret' },
      hosts: ['n1:2113', 'n2:3000'],
      isTls: true,
      caFile: 'ca.crt',
    });
  });

  it('parses a single host without TLS or a name', () => {
    expect(parseConnectionString('esdb+discover://cluster.example/?TLS=false')).toEqual({
      credentials: null,
      hosts: ['cluster.example:2113'],
      isTls: false,
      caFile: null,
    });
  });
});
