import { describe, expect, it } from '@jest/globals';
import { ConfigError } from '#platform/kernel/config-error.js';
import { EventStoreDbConnection } from './eventstoredb-connection.js';

describe('EventStoreDbConnection', () => {
  it.each([
    [
      'an unknown option',
      'tsl=false',
      /^EVENT_STORE_URL: has an option that does not exist, tsl: there are tls, /,
    ],
    ['a certificate file that does not exist', 'tlsCAFile=none.crt', /File was not found/],
  ])('refuses a connection string with %s without showing the password', (_what, option, words) => {
    const connect = () => new EventStoreDbConnection(`esdb://user:secret@n1:2113?${option}`);
    expect(connect).toThrow(ConfigError);
    expect(connect).toThrow(words);
    expect(connect).not.toThrow('secret');
  });

  it('replaces a client once, and none after dispose', async () => {
    const connection = new EventStoreDbConnection('kdb+discover://localhost:2113');
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

  it('lets nothing be sent after dispose, which would keep the process alive', async () => {
    const connection = new EventStoreDbConnection('esdb://localhost:2113');
    await connection.dispose();
    await expect(connection.call(async () => 'sent')).rejects.toThrow('the connection was closed');
  });
});
