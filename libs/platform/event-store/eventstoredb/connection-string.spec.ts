import { describe, expect, it } from '@jest/globals';
import { findConnectionStringError, parseConnectionString } from './connection-string.js';

describe('parseConnectionString', () => {
  it('parses the name, the password, each host and the authority', () => {
    expect(parseConnectionString('kdb://ink%40pad:s%3Acret@n1,n2:3000?tls_ca_file=ca.crt')).toEqual(
      {
        credentials: { name: 'ink@pad', password: 's:cret' },
        hosts: ['n1:2113', 'n2:3000'],
        isTls: true,
        caFile: 'ca.crt',
      },
    );
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

describe('findConnectionStringError', () => {
  it.each([
    'kurrentdb+discover://n1',
    'esdb://n1:2113,n2:2113,n3:2113?tls=false&nodePreference=Leader',
    'kdb+discover://ink%40pad:s%3Acret%2F@cluster.example:2113/?tls_ca_file=/etc/ca.crt&KeepAliveInterval=-1',
    'esdb://n1?defaultDeadline=10000&discoveryInterval=100',
  ])('finds none in %s', (url) => {
    expect(findConnectionStringError(url)).toBeUndefined();
  });

  it.each(['@', '/', ':', '?', '#', '%', '%zz', '@/', '?tls=', '/?a=b&', '12?34=5', 'a,b@'])(
    'says that special characters have to be encoded, and no part of a password with %s',
    (special) => {
      const secret = `Geheim${special}Wort`;
      const message = findConnectionStringError(`esdb://inkpad:${secret}@n1:2113?tls=false`);
      if (message === undefined) throw new Error('there is no error');
      expect(message).toBe(
        'must have %40, %2F and the like for special characters of name and password',
      );
    },
  );

  it.each([
    ['esdb://n1?foo=1', /^has an option that does not exist, foo: there are tls, tlsCAFile, /],
    ['esdb://n1?tlsVerifyCert=false', /^has an option that does not exist, tlsVerifyCert: /],
    ['esdb://n1?tls=maybe', /^tls must be true or false$/],
    ['esdb://n1?nodePreference=follower', /^nodePreference must be leader, because /],
    ['esdb://n1?defaultDeadline=1', /^defaultDeadline must be at least 1000 milliseconds$/],
    [
      'esdb://n1?keepAliveTimeout=10s',
      /^keepAliveTimeout must be a whole number of milliseconds, or -1$/,
    ],
    ['esdb://', /^must be a connection string such as kurrentdb:/],
    ['esdb://n1:port', /^must be a connection string such as kurrentdb:/],
    ['esdb://n 1', /^must be a connection string such as kurrentdb:/],
    ['http://n1', /^must be a connection string such as kurrentdb:/],
  ])('says what is wrong with %s', (url, message) => {
    expect(findConnectionStringError(url)).toMatch(message);
  });
});
