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
  return 'accepted';
};

describe('EventStoreDbConnection', () => {
  it.each([
    'esdb://n1:2113,n2:2113,n3:2113?nodePreference=leader',
    'esdb+discover://cluster.mail.example:2113?tls=true&keepAliveInterval=10000',
    'esdb://user:secret@localhost:2113/?tls=false',
    'kurrentdb://localhost:2113',
    'kurrentdb+discover://cluster.mail.example:2113',
    'kdb://localhost:2113?tls=false',
    'kdb+discover://cluster.mail.example:2113',
  ])('accepts the connection string %s', (url) => {
    expect(connect(url)).toBe('accepted');
  });

  it.each([
    [
      'an invalid port',
      'esdb://user:secret@n1:port?tls=false',
      /^EVENT_STORE_URL: must be a connection string/,
    ],
    [
      'an unknown option',
      'esdb://user:secret@n1:2113?tsl=false',
      /^EVENT_STORE_URL: has an option that does not exist, tsl: there are tls, /,
    ],
    [
      'a certificate file that does not exist',
      'esdb://user:secret@n1:2113?tlsCAFile=none.crt',
      /File was not found/,
    ],
    [
      'reads from followers',
      'esdb://user:secret@n1:2113,n2:2113?nodePreference=Follower',
      /^EVENT_STORE_URL: nodePreference must be leader/,
    ],
  ])('refuses a connection string with %s without showing the password', (_what, url, words) => {
    expect(connect(url)).toMatch(words);
    expect(connect(url)).not.toContain('secret');
  });
});

describe('EventStoreDbConnection.renew', () => {
  it.each([
    'esdb://localhost:2113',
    'esdb://localhost:2113/',
    'esdb://n1:2113,n2:2113?tls=false',
    'esdb://localhost:2113?keepAliveTimeout=5000&tls=false',
    'esdb://localhost:2113?keepAliveTimeout=-1',
  ])('replaces a client of %s once, and none after dispose', async (url) => {
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

describe('EventStoreDbConnection.dispose', () => {
  it('lets nothing be sent afterwards, which would keep the process alive', async () => {
    const connection = new EventStoreDbConnection('esdb://localhost:2113');
    await connection.dispose();
    await expect(connection.call(async () => 'sent')).rejects.toThrow('the connection was closed');
  });
});
