import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import {
  createServer as createTcpServer,
  type AddressInfo,
  type Server,
  type Socket,
} from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { promisify } from 'node:util';
import { NameLookup } from '#outbound/sending/name-lookup.client.js';
import { WebhookClient } from '#outbound/sending/webhook.client.js';
import { testConfig } from '../support/database/database.js';
import { selfSigned } from '../support/emulators/eventstoredb/certificate.mjs';
import { NameServer, type Zone } from '../support/emulators/name-server.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

const SLOW = 300_000;
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';
const run = promisify(execFile);
const cleanUps: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

async function listen(server: Server, host = '127.0.0.1'): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  cleanUps.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

describe('a webhook subscription', () => {
  const zone: Zone = ({ name }) => {
    if (name === 'late.example') return 'silence';
    if (name === 'none.example') return 'nxdomain';
    if (name === 'half.example') return { addresses: ['10.0.0.1', '8.8.8.8'] };
    if (name === 'onprem.example') return { addresses: ['10.9.8.7'] };
    if (name === 'six.example') return { addresses: ['fe80::1', '::ffff:169.254.169.254'] };
    return { addresses: name === 'public.example' ? ['8.8.8.8'] : ['169.254.169.254'] };
  };
  let service: LocalService;
  let store: Client;
  let names: NameServer;

  beforeAll(async () => {
    service = await startService({ WEBHOOK_ALLOWED_CIDRS: '10.9.0.0/16' });
    names = await NameServer.start(zone);
    names.takeOver(service.app.get(NameLookup, { strict: false }));
    store = await service.newStore();
  }, SLOW);

  afterAll(async () => {
    await service.stop();
    await names.stop();
  }, SLOW);

  const subscribe = (target_url: string) =>
    store.post<{ errors?: object }>(`${store.store}/webhook_subscriptions`, {
      target_url,
      event: '*',
    });

  it.each(['public', 'half', 'late', 'none', 'onprem'])(
    'can be created for the host name %s.example',
    async (name) => {
      expect((await subscribe(`https://${name}.example/hooks`)).status).toBe(201);
    },
  );

  it.each([
    'https://metadata.example/',
    'https://six.example/',
    'https://localhost/',
    'https://10.8.0.1/',
    'https://[::ffff:10.8.0.1]/',
    'https://[64:ff9b::10.8.0.1]/',
    'http://10.9.0.1/',
  ])('gets 422 for %s', async (url) => {
    const { status, body, text } = await subscribe(url);
    expect(status).toBe(422);
    expect(Object.keys(body.errors ?? {})).toEqual(['target_url']);
    expect(text).not.toMatch(/169\.254|10\.[89]|fe80/);
  });

  it('can be created for an address in WEBHOOK_ALLOWED_CIDRS', async () => {
    expect((await subscribe('https://10.9.0.1:8443/hooks')).status).toBe(201);
  });
});

describe('the TLS certificate of a webhook receiver', () => {
  const trusted = selfSigned();
  const expired = selfSigned(new Date(Date.now() - 60_000));
  let folder: string;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'inkpad-certificates-'));
    writeFileSync(join(folder, 'ca.pem'), Buffer.concat([trusted.cert, expired.cert]));
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  /** Sends one delivery from a process that trusts both certificates, or none. @returns the outcome */
  async function attemptDelivery(
    options: TlsOptions,
    { host = 'localhost', trust = true, environment = {} } = {},
  ): Promise<unknown> {
    const server = createTlsServer(options, (socket) => {
      socket.on('error', () => socket.destroy());
      socket.on('data', () => socket.write(OK));
    });
    const port = await listen(server, '0.0.0.0');
    const { stdout } = await run(
      process.execPath,
      [
        '--no-warnings',
        'test/support/services/attempt-delivery.mjs',
        `https://${host}:${port}/hooks`,
      ],
      {
        env: {
          PATH: process.env['PATH'],
          TMPDIR: process.env['TMPDIR'],
          DATABASE_URL: 'postgres://nowhere/none',
          MASTER_KEY: Buffer.alloc(32).toString('base64'),
          WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
          ...(trust && { NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') }),
          ...environment,
        },
      },
    );
    return JSON.parse(stdout);
  }

  const createFailure = (error: string) => ({ kind: 'failed', cause: 'tls', error });

  it('is accepted from a trusted authority', async () => {
    expect(await attemptDelivery(trusted)).toEqual({
      kind: 'responded',
      status: 200,
      retryAfter: null,
    });
  });

  it('is requested for the host name without its trailing dot', async () => {
    const names: string[] = [];
    const SNICallback: TlsOptions['SNICallback'] = (name, done) => {
      names.push(name);
      done(null);
    };
    const { status } = (await attemptDelivery(
      { ...trusted, SNICallback },
      { host: 'localhost.' },
    )) as {
      status?: number;
    };
    expect([status, names]).toEqual([200, ['localhost']]);
  });

  it('is refused when it is self-signed, even with NODE_TLS_REJECT_UNAUTHORIZED=0', async () => {
    const environment = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };
    expect(await attemptDelivery(trusted, { trust: false, environment })).toEqual(
      createFailure('The TLS certificate is self-signed'),
    );
  });

  it('is refused for another name', async () => {
    expect(await attemptDelivery(trusted, { host: '127.0.0.2' })).toEqual(
      createFailure('The TLS certificate is for another name'),
    );
  });

  it('is refused when it has expired', async () => {
    expect(await attemptDelivery(expired)).toEqual(
      createFailure('The TLS certificate has expired'),
    );
  });

  it('is refused over TLS 1.1', async () => {
    const old = {
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
    } as const;
    expect(await attemptDelivery({ ...trusted, ...old })).toEqual(
      createFailure('The receiver offers no safe version of TLS'),
    );
  });
});

describe('a webhook attempt', () => {
  const HEAD = 'HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n';

  /** Starts a server that sends a text, and then a letter every 100 ms for ever. */
  async function startDripping(text: string, letter: string): Promise<number> {
    return listen(
      createTcpServer((socket) => {
        socket.once('data', () => {
          socket.write(text);
          const timer = setInterval(() => socket.write(letter), 100);
          socket.on('close', () => clearInterval(timer));
        });
      }),
    );
  }

  it('fails after 10 seconds without a complete response header, and does not wait for an endless body', async () => {
    const environment = { WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' };
    const config = testConfig('postgres://nowhere/none', environment);
    const names = await NameServer.start(() => 'silence');
    cleanUps.push(() => names.stop());
    const client = new WebhookClient(config, names.lookup());
    cleanUps.push(() => client.onApplicationShutdown());
    const ports = [
      await listen(createTcpServer()),
      await startDripping('HTTP/1.1 200 OK\r\nx-filler: ', 'x'),
      await startDripping(HEAD, 'x'),
    ];
    const [silent, drippingHead, drippingBody] = await Promise.all(
      ports.map((port) =>
        client.send({
          url: `http://127.0.0.1:${port}/`,
          secret: `whsec_${Buffer.alloc(32).toString('base64')}`,
          eventId: 'evt_1',
          type: 'stamp.earned',
          body: Buffer.from('{}'),
        }),
      ),
    );
    const late = { kind: 'failed', cause: 'timeout', error: 'No response within 10 seconds' };
    expect(silent?.outcome).toEqual(late);
    expect(drippingHead?.outcome).toEqual(late);
    expect(drippingBody?.outcome).toEqual({ kind: 'responded', status: 200, retryAfter: null });
    expect(drippingBody?.excerpt).toMatch(/^x+$/);
  });
});
