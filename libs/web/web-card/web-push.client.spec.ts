import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { readConfig } from '#configuration/config.js';
import { OutdatedError } from '#outbound/sending/http-response.js';
import { NameLookup } from '#outbound/sending/name-lookup.client.js';
import { ConnectProxy } from '../../../test/support/emulators/connect-proxy.js';
import { startPushService } from '../../../test/support/emulators/web-push/server.mjs';
import { WebPushClient } from './web-push.client.js';

let proxy: ConnectProxy;
let client: WebPushClient;

beforeEach(async () => {
  proxy = await ConnectProxy.start();
  proxy.decide = () => 502;
  const config = readConfig({
    DATABASE_URL: 'postgres://nowhere/none',
    MASTER_KEY: Buffer.alloc(32).toString('base64'),
    OUTBOUND_PROXY_URL: `http://127.0.0.1:${proxy.port}`,
    OUTBOUND_PROXY_RESOLVES_NAMES: 'true',
    WEB_PUSH_SERVICES: 'push.example',
  });
  client = new WebPushClient(config, new NameLookup());
});
afterEach(async () => {
  await client.onApplicationShutdown();
  await proxy.stop();
});

const post = (url: string) => client.post(url, {}, Buffer.from('x'), () => true);

it.each([
  'https://internal-host/admin?x=1',
  'https://metadata.google.internal:8080/',
  'https://example.com/',
  'https://fcm.googleapis.com:8443/',
  'http://fcm.googleapis.com/',
])('sends nothing to an endpoint that was stored before it was refused: %s', async (url) => {
  expect(await post(url)).toEqual({ kind: 'blocked' });
  expect(proxy.requests).toEqual([]);
});

it('throws for what must not be sent any more, which is no failure of the push service', async () => {
  const service = await startPushService();
  const insecure = new WebPushClient(
    readConfig({
      DATABASE_URL: 'postgres://nowhere/none',
      MASTER_KEY: Buffer.alloc(32).toString('base64'),
      WEB_PUSH_ALLOW_INSECURE_ENDPOINTS: 'true',
    }),
    new NameLookup(),
  );
  try {
    const { endpoint } = service.subscribe('x').subscription;
    const sending = insecure.post(endpoint, {}, Buffer.from('x'), () => false);
    await expect(sending).rejects.toThrow(OutdatedError);
    expect(service.rejections).toEqual([]);
  } finally {
    await insecure.onApplicationShutdown();
    await service.stop();
  }
});

it.each(['fcm.googleapis.com', 'web.push.apple.com', 'push.example'])(
  'asks the proxy for the push service %s',
  async (name) => {
    expect(await post(`https://${name}/a`)).toMatchObject({ kind: 'failed' });
    expect(proxy.requests.map(({ authority }) => authority)).toEqual([`${name}:443`]);
  },
);
