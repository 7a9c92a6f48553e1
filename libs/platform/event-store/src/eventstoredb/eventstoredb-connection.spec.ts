import { describe, expect, it } from '@jest/globals';
import { ConfigError } from '#kernel/config-error.js';
import { EventStoreDbConnection } from './eventstoredb-connection.js';

const connect = (url: string): string => {
  try {
    void new EventStoreDbConnection(url).dispose();
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return 'taken';
};

describe('a connection string', () => {
  it.each([
    'esdb://n1:2113,n2:2113,n3:2113?nodePreference=leader',
    'esdb+discover://cluster.mail.example:2113?tls=true&keepAliveInterval=10000',
    'esdb://user:secret@localhost:2113/?tls=false',
  ])('of a server or a cluster is taken: %s', (url) => {
    expect(connect(url)).toBe('taken');
  });

  it.each([
    ['a port that is none', 'esdb://user:secret@n1:port?tls=false', /^EVENT_STORE_URL: Unexpected/],
    [
      'an unknown option',
      'esdb://user:secret@n1:2113?tsl=false',
      /^EVENT_STORE_URL: Unknown option key "tsl"/,
    ],
    [
      'a certificate that is not there',
      'esdb://user:secret@n1:2113?tlsCAFile=none.crt',
      /File was not found/,
    ],
    [
      'reads from followers',
      'esdb://user:secret@n1:2113,n2:2113?nodePreference=Follower',
      /^EVENT_STORE_URL: nodePreference must be leader/,
    ],
  ])('with %s is refused without showing the password', (_what, url, words) => {
    expect(connect(url)).toMatch(words);
    expect(connect(url)).not.toContain('secret');
  });
});

describe('a renewed client', () => {
  it.each([
    'esdb://localhost:2113',
    'esdb://localhost:2113/',
    'esdb://n1:2113,n2:2113?tls=false',
    'esdb://localhost:2113?keepAliveTimeout=5000&tls=false',
    'esdb://localhost:2113?keepAliveTimeout=-1',
  ])('is another one, once for all who found the old one silent: %s', async (url) => {
    const connection = new EventStoreDbConnection(url);
    const first = connection.client;
    connection.renew(first);
    const second = connection.client;
    expect(second).not.toBe(first);
    connection.renew(first);
    expect(connection.client).toBe(second);
    await connection.dispose();
    connection.renew(second);
    expect(connection.client).toBe(second);
  });
});
