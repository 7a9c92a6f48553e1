import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { Pool } from 'pg';
import type { Config } from '#configuration/config.js';
import { getMessageWithCause } from '#platform/kernel/errors.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { VendorRateLimiter } from '#platform/database/vendor-rate-limiter.js';
import { ApnsClient } from '#outbound/apple-wallet/apns.client.js';
import { createGeocoder } from '#outbound/geocoding/geocoding.module.js';
import { CallbackKeys } from '#outbound/google-wallet/callback-keys.client.js';
import { GoogleTokens } from '#outbound/google-wallet/google-tokens.client.js';
import { GoogleWalletClient } from '#outbound/google-wallet/google-wallet.client.js';
import { SmsClient } from '#outbound/messages/sms.client.js';
import { SmtpClient } from '#outbound/messages/smtp.client.js';
import { OutboundHttp } from '#outbound/sending/outbound-http.client.js';
import { createNodeAgents } from '#outbound/sending/outbound-node-agent.client.js';
import { OutboundTunnels } from '#outbound/sending/outbound-tunnels.client.js';
import { IdentityProvider } from '#web/sign-in/company.client.js';
import { getTranslations } from '#translations/translations.js';
import { testConfig } from '../support/database/database.js';
import { appleWorld, type AppleWorld } from '../support/emulators/apple/world.js';
import { ConnectProxy } from '../support/emulators/connect-proxy.js';
import { GeocoderEmulator } from '../support/emulators/geocoders/server.js';
import { startGoogleWallet, type GoogleWallet } from '../support/emulators/google/server.mjs';
import { MailServer } from '../support/emulators/mail-server.js';
import { CompanyProvider } from '../support/emulators/oidc-provider.js';
import { SmsProvider } from '../support/emulators/sms/sms-provider.js';
import { SpanReceiver } from '../support/emulators/span-receiver.js';
import { startService, type LocalService } from '../support/services/service.js';

const NEVER = new AbortController().signal;
const PASSWORD = 'sésame';
const CREDENTIALS = Buffer.from(`till:${PASSWORD}`).toString('base64');

let service: LocalService;
let proxy: ConnectProxy;
let apple: AppleWorld;
let geocoder: GeocoderEmulator;
let google: GoogleWallet;
let mails: MailServer;
let company: CompanyProvider;
let sms: SmsProvider;
let spans: SpanReceiver;
const warnings: string[] = [];

beforeAll(async () => {
  service = await startService();
  apple = await appleWorld();
  geocoder = await GeocoderEmulator.start('nominatim');
  google = await startGoogleWallet({ host: 'wallet.example' });
  mails = await MailServer.start();
  company = await CompanyProvider.start('login.example');
  sms = await SmsProvider.start();
  spans = await SpanReceiver.start();
  proxy = await ConnectProxy.start();
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((text: unknown) => {
    warnings.push(String(text));
  });
});

afterAll(async () => {
  jest.restoreAllMocks();
  await Promise.all([apple.apns, geocoder, google, company, sms, spans, proxy].map((server) => server.stop())); // prettier-ignore
  await mails.goAway();
  await service.stop();
});

beforeEach(() => {
  proxy.decide = () => 200;
  proxy.requests.length = 0;
});

/** Creates the settings for servers whose names only the proxy resolves. */
function createConfig(proxyPort = proxy.port): Config {
  const config = testConfig('postgres://nowhere/none', {
    ...apple.settings,
    APNS_URL: apple.apns.url.replace('localhost', 'push.example'),
    ...geocoder.settings,
    GEOCODER_URL: geocoder.settings['GEOCODER_URL']?.replace('127.0.0.1', 'places.example'),
    ...google.environment,
    SMTP_URL: mails.url.replace('127.0.0.1', 'mail.example'),
    MAIL_FROM: 'inkpad@shop.example',
    ...sms.settings,
    SMS_URL: sms.settings['SMS_URL']?.replace('127.0.0.1', 'sms.example'),
    OUTBOUND_PROXY_URL: `http://till:${encodeURIComponent(PASSWORD)}@127.0.0.1:${proxyPort}`,
    OUTBOUND_PROXY_RESOLVES_NAMES: 'true',
  });
  const { OIDC_ISSUER: issuer } = company.environment;
  const { clientId, clientSecret } = company;
  // Settings refuse http for a company's sign-in that is not on this machine.
  return Object.assign(Object.create(config) as Config, {
    oidc: { issuer, clientId, clientSecret, areEmailsConfirmed: false },
  });
}

type Contact = (config: Config) => Promise<string>;

const contacts: Record<string, Contact> = {
  'an e-mail': async (config) => {
    const mail = { to: 'ada@mail.example', subject: 'Your card', text: 'Hello Ada' };
    const outcome = await new SmtpClient(config).send('1', mail, NEVER);
    return outcome.kind === 'sent' ? 'ok' : outcome.error;
  },
  'an SMS': async (config) => {
    const message = { id: '1', to: '+4915112345678', text: 'Hello Ada' };
    const outcome = await new SmsClient(config).send(message, NEVER, () => true);
    return outcome.kind === 'sent' ? 'ok' : outcome.error;
  },
  'a pass of Google': async (config) => {
    const limiter = new VendorRateLimiter(getPool());
    const client = new GoogleWalletClient(new GoogleTokens(config), limiter, config);
    const response = await client.get('loyaltyObject', `${google.issuerId}.none`, NEVER);
    return response.kind === 'missing' ? 'ok' : JSON.stringify(response);
  },
  'the keys of Google': async (config) => {
    const keys = await new CallbackKeys(config).get();
    return keys.length > 0 ? 'ok' : 'no keys';
  },
  'a push of Apple': async (config) => {
    if (config.apple === null) throw new Error('the settings of Apple Wallet are missing');
    const client = new ApnsClient(config.apple, new OutboundTunnels(config.outboundProxy));
    const token = 'ab'.repeat(32);
    apple.apns.register(token);
    try {
      const { status } = await client.push(token, NEVER);
      return status === 200 ? 'ok' : String(status);
    } finally {
      client.close();
    }
  },
  'an address to look up': async (config) => {
    // Another address each time, because results are cached.
    const address = `Marktplatz ${geocoder.requests.length + proxy.requests.length}`;
    const response = await createGeocoder(config, getPool()).find(address, NEVER);
    return response.kind === 'not_found' ? 'ok' : JSON.stringify(response);
  },
  'a sign-in with a company': async (config) => {
    const identityProvider = new IdentityProvider(config, getFromApp(MasterKeys));
    const { company: t } = getTranslations('en').t.signIn;
    const { url, sealed } = await identityProvider.begin('/app', t);
    const browser = await fetch(url.replace('login.example', '127.0.0.1'), { redirect: 'manual' });
    const { search } = new URL(browser.headers.get('location') ?? '');
    const { person } = await identityProvider.finish(search, sealed, t);
    return person.email === 'grace@company.example' ? 'ok' : 'nobody';
  },
  'a trace': (config) =>
    new Promise((resolve, reject) => {
      const url = new URL(spans.url.replace('127.0.0.1', 'traces.example'));
      const request = http.request(`${url.href}v1/traces`, {
        method: 'POST',
        agent: createNodeAgents(config)?.('http:'),
        headers: { connection: 'close' },
      });
      request.on('response', (response) => {
        response.resume();
        resolve(response.statusCode === 200 ? 'ok' : String(response.statusCode));
      });
      request.on('error', reject);
      request.end('{"resourceSpans":[]}');
    }),
};

/** The hosts that each kind needs. */
const HOSTS: Record<string, string[]> = {
  'an e-mail': ['mail.example'],
  'an SMS': ['sms.example'],
  'a pass of Google': ['wallet.example'],
  'the keys of Google': ['wallet.example'],
  'a push of Apple': ['push.example'],
  'an address to look up': ['places.example'],
  'a sign-in with a company': ['login.example'],
  'a trace': ['traces.example'],
};

const getFromApp = <T>(type: abstract new (...args: never[]) => T): T =>
  service.app.get<T>(type, { strict: false });
const getPool = () => getFromApp(Pool);

/** Makes every contact at once. @returns the text of each outcome */
async function contactAll(config: Config): Promise<Record<string, string>> {
  const outcomes = await Promise.all(
    Object.entries(contacts).map(async ([kind, contact]) => {
      const outcome = await contact(config).catch((error: unknown) => getMessageWithCause(error));
      return [kind, outcome] as const;
    }),
  );
  return Object.fromEntries(outcomes);
}

describe('the outgoing proxy', () => {
  it.each(Object.keys(contacts))('carries %s', async (kind) => {
    expect(await contacts[kind]?.(createConfig())).toBe('ok');
    const hosts = proxy.requests.map(({ authority }) => authority.split(':')[0] ?? '');
    expect([...new Set(hosts)]).toEqual(HOSTS[kind]);
    const logins = new Set(proxy.requests.map(({ authorization }) => authorization));
    expect([...logins]).toEqual([`Basic ${CREDENTIALS}`]);
    expect(proxy.otherRequestCount).toBe(0);
  });

  it('carries TLS from end to end, with the certificate of the server', async () => {
    const { server, root } = apple.certificates;
    const { certificate: cert, key } = server;
    const receiver = https.createServer({ cert, key }, (_request, response) => response.end('ok'));
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    const url = `https://push.example:${(receiver.address() as AddressInfo).port}/`;
    const config = createConfig();
    const get = (options: https.RequestOptions) =>
      new Promise((resolve, reject) => {
        const agent = createNodeAgents(config)?.('https:');
        const request = https.get(url, { ...options, agent, headers: { connection: 'close' } });
        request.on('response', (response) => resolve(response.resume().statusCode));
        request.on('error', reject);
      });
    try {
      const unverified = { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' };
      const response = new OutboundHttp(config.outboundProxy).fetch(url, {});
      await expect(response).rejects.toMatchObject({ cause: unverified });
      await expect(get({})).rejects.toMatchObject(unverified);
      expect(await get({ ca: root })).toBe(200);
      expect(proxy.requests).toHaveLength(3);
    } finally {
      receiver.closeAllConnections();
      await new Promise((resolve) => receiver.close(resolve));
    }
  });

  it('fails every kind when it refuses the password, which no error and no log shows', async () => {
    proxy.decide = () => 407;
    const outcomes = await contactAll(createConfig());
    const reached = Object.entries(outcomes).filter(([, outcome]) => outcome === 'ok');
    expect(reached).toEqual([]);
    const { 'a sign-in with a company': page, ...others } = outcomes;
    expect(page).toContain('cannot be reached');
    for (const outcome of Object.values(others)) {
      expect(outcome).toContain('407: check the name and password in OUTBOUND_PROXY_URL');
    }
    expect(warnings.join('\n')).toContain('407: check the name and password');
    const texts = JSON.stringify([outcomes, warnings]);
    expect(texts).not.toContain(PASSWORD);
    expect(texts).not.toContain(CREDENTIALS);
  });

  it('fails every kind when it is down', async () => {
    const outcomes = await contactAll(createConfig(1));
    expect(Object.values(outcomes).filter((outcome) => outcome === 'ok')).toEqual([]);
    expect(proxy.requests).toEqual([]);
  });

  it('fails every kind within its deadline when it does not respond', async () => {
    proxy.decide = () => 0;
    // Nothing else ends them.
    const outcomes = await contactAll(createConfig());
    expect(Object.values(outcomes).filter((outcome) => outcome === 'ok')).toEqual([]);
    expect(proxy.requests.length).toBeGreaterThanOrEqual(Object.keys(contacts).length);
  });
});
