import { describe, expect, it } from '@jest/globals';
import { mkdtempSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError } from '#platform/kernel/config-error.js';
import { readConfig } from './config.js';
import { VERSION } from '#platform/kernel/version.js';

const createFolder = () => mkdtempSync(join(tmpdir(), 'inkpad-config-'));
const DATABASE_URL = 'postgres://u:p@localhost:5432/x';

const KEY = Buffer.alloc(32, 5).toString('base64');

describe('readConfig', () => {
  it('returns defaults', () => {
    const config = readConfig({ DATABASE_URL, DATA_DIR: createFolder() });
    expect(config).toMatchObject({
      port: 3000,
      publicUrl: 'http://localhost:3000',
      rateLimitPerMinute: 300,
      quotas: { customers: null, cards: 500, locations: 500, webhook_subscriptions: 25 },
      trustProxyHops: 0,
      webhookAllowedCidrs: [],
      webhookAllowInsecureTargets: false,
      databaseMigrationUrl: DATABASE_URL,
    });
  });

  it('names every invalid value in one message', () => {
    const bad = { DATABASE_URL: 'mysql://x', PORT: 'http', TRUST_PROXY_HOPS: '-1' };
    expect(() => readConfig(bad)).toThrow(/DATABASE_URL[^]*PORT|PORT[^]*DATABASE_URL/);
    expect(() => readConfig(bad)).toThrow(/TRUST_PROXY_HOPS/);
  });

  it.each(['\r', ' ', '\t\r\n', '\u200B', '\uFEFF', '\u00A0'])(
    'removes %j around values',
    (end) => {
      const config = readConfig({
        DATABASE_URL,
        DATA_DIR: `${createFolder()}${end}`,
        PORT: `${end}8080${end}`,
        HOST: `127.0.0.1${end}`,
        LOG_LEVEL: `${end}debug${end}`,
        WEBHOOK_ALLOW_INSECURE_TARGETS: `true${end}`,
        API_V1_DEPRECATION_DATE: `2027-01-31${end}`,
        GEOCODER: end,
        REDIS_URL: end,
      });
      expect(config).toMatchObject({
        host: '127.0.0.1',
        port: 8080,
        logLevel: 'debug',
        webhookAllowInsecureTargets: true,
        redisUrl: null,
      });
      expect(config.dataDir.endsWith(end)).toBe(false);
    },
  );

  it('accepts an EVENT_STORE_URL of a cluster, and refuses another protocol', () => {
    const cluster = 'esdb://n1:2113,n2:2113,n3:2113?nodePreference=leader';
    const config = readConfig({ DATABASE_URL, DATA_DIR: createFolder(), EVENT_STORE_URL: cluster });
    expect(config.eventStoreUrl).toBe(cluster);
    expect(() => readConfig({ DATABASE_URL, EVENT_STORE_URL: 'http://n1:2113' })).toThrow(
      /EVENT_STORE_URL/,
    );
  });

  it.each([
    ['3000', {}],
    ['4000', { PORT: '4000' }],
    ['4001', { HEALTH_PORT: '4001' }],
  ])('refuses port %s for metrics when something else uses it', (port, others) => {
    const read = (metrics: string) =>
      readConfig({ DATABASE_URL, DATA_DIR: createFolder(), ...others, METRICS_PORT: metrics });
    expect(() => read(port)).toThrow(/METRICS_PORT: is (HEALTH_)?PORT as well/);
    expect(read('9000').metricsPort).toBe(9000);
    expect(read('0').metricsPort).toBe(0);
  });

  it('refuses an unknown NODE_ENV, such as another spelling of production', () => {
    expect(() => readConfig({ DATABASE_URL, NODE_ENV: 'Production' })).toThrow(/NODE_ENV/);
    expect(() => readConfig({ DATABASE_URL, NODE_ENV: 'staging' })).toThrow(/NODE_ENV/);
    expect(
      readConfig({ DATABASE_URL, DATA_DIR: createFolder(), NODE_ENV: 'test' }).isProduction,
    ).toBe(false);
  });

  it('reads CIDR ranges and refuses invalid and IPv4-mapped ones', () => {
    const read = (WEBHOOK_ALLOWED_CIDRS: string) =>
      readConfig({ DATABASE_URL, DATA_DIR: createFolder(), WEBHOOK_ALLOWED_CIDRS })
        .webhookAllowedCidrs;
    expect(read('10.1.0.0/16, fd12::/48').map(String)).toEqual(['10.1.0.0/16', 'fd12::/48']);
    for (const wrong of ['10.1.0.0', '10/8', '10.0.0.0/33', '10.0.0.0/8,', 'shop.example/24']) {
      expect(() => read(wrong)).toThrow(/WEBHOOK_ALLOWED_CIDRS: must be ranges/);
    }
    for (const ranges of [
      '::ffff:10.0.0.0/104',
      '::ffff:a00:0/104',
      '::ffff:0:0/96',
      '0:0:0:0:0:FFFF:10.1.2.3/128',
      '10.0.0.0/8, ::ffff:10.0.0.0/104',
    ]) {
      expect(() => read(ranges)).toThrow(/WEBHOOK_ALLOWED_CIDRS: must have IPv4 ranges as such/);
    }
    expect(read('::/0, ::ffff:0:0/95')).toHaveLength(2);
  });

  it('reads the quotas of every store by their names, and leaves the others as they are', () => {
    const read = (STORE_QUOTAS: string) =>
      readConfig({ DATABASE_URL, DATA_DIR: createFolder(), STORE_QUOTAS }).quotas;
    const usual = read('');
    expect(read('customers=5000, sms_per_day=0,cards=default')).toEqual({
      ...usual,
      customers: 5000,
      sms_per_day: 0,
    });
    for (const wrong of ['guests=1', 'cards', 'cards=-1', 'cards=1;posters=2', 'cards=1,']) {
      expect(() => read(wrong)).toThrow(/STORE_QUOTAS: must be quotas such as .* customers, cards/);
    }
  });

  it('reads one file of a font for all letters, or two', () => {
    const read = (POSTER_FONTS: string) =>
      readConfig({ DATABASE_URL, DATA_DIR: createFolder(), POSTER_FONTS }).posterFonts;
    expect(read('')).toBeNull();
    expect(read('/noto.ttf')).toEqual({ regular: '/noto.ttf', bold: '/noto.ttf' });
    expect(read('/noto.ttf, /bold.otf')).toEqual({ regular: '/noto.ttf', bold: '/bold.otf' });
    for (const wrong of [',', '/noto.ttf,', 'a,b,c']) {
      expect(() => read(wrong)).toThrow(/POSTER_FONTS: must be one file, or two/);
    }
  });

  it('requires all SMS settings or none', () => {
    const whole = {
      SMS_URL: 'https://api.twilio.com/',
      SMS_ACCOUNT: 'AC0123456789abcdef0123456789abcdef',
      SMS_TOKEN: 'sesame',
      SMS_FROM: '+15005550006',
    };
    const read = (changes: object) =>
      readConfig({ DATABASE_URL, DATA_DIR: createFolder(), ...changes }).sms;
    expect(read({})).toBeNull();
    expect(read(whole)).toEqual({
      url: 'https://api.twilio.com',
      account: whole.SMS_ACCOUNT,
      token: 'sesame',
      from: '+15005550006',
    });
    for (const name of Object.keys(whole)) {
      expect(() => read({ ...whole, [name]: '' })).toThrow(new RegExp(`needs ${name}`));
    }
    for (const from of ['InkPad', '71234', `MG${'0a'.repeat(16)}`]) {
      expect(read({ ...whole, SMS_FROM: from })?.from).toBe(from);
    }
    for (const wrong of ['0151 2345', 'A name that is too long', 'a\nb', '+0151']) {
      expect(() => read({ ...whole, SMS_FROM: wrong })).toThrow(/SMS_FROM: must be a number/);
    }
    expect(() => read({ ...whole, SMS_ACCOUNT: 'a/b' })).toThrow(/SMS_ACCOUNT: must be/);
    const production = { ...whole, NODE_ENV: 'production', SMS_URL: 'http://sms.example' };
    expect(() => read(production)).toThrow(/SMS_URL: must begin with https(?!.*sesame)/);
    const capitals = { ...production, SMS_URL: 'HTTP://sms.example' };
    expect(() => read(capitals)).toThrow(/SMS_URL: must begin with https/);
  });

  it('requires the URL of a geocoder, and a contact where its server requires one', () => {
    const read = (settings: NodeJS.ProcessEnv) =>
      readConfig({ DATABASE_URL, DATA_DIR: createFolder(), ...settings }).geocoder;
    expect([read({}), read({ GEOCODER: 'none' })]).toEqual(['offline', 'none']);
    const GEOCODER_URL = 'https://maps.example/v1/';
    expect(read({ GEOCODER: 'photon', GEOCODER_URL, GEOCODER_CONTACT: 'me@x.example' })).toEqual({
      protocol: 'photon',
      url: 'https://maps.example/v1',
      key: null,
      userAgent: `Inkpad/${VERSION} (me@x.example)`,
      requestsPerSecond: 1,
    });
    expect(() => read({ GEOCODER: 'pelias' })).toThrow(/pelias needs GEOCODER_URL/);
    expect(() => read({ GEOCODER_URL })).toThrow(/GEOCODER_URL: needs GEOCODER/);
    expect(() => read({ GEOCODER: 'google', GEOCODER_URL })).toThrow(/GEOCODER: must be offline/);
    expect(() =>
      read({ GEOCODER: 'nominatim', GEOCODER_URL: 'https://nominatim.openstreetmap.org' }),
    ).toThrow(/GEOCODER_CONTACT: is required/);
    expect(() => read({ GEOCODER_CONTACT: 'x\r\nhost: y' })).toThrow(/GEOCODER_CONTACT/);
  });

  it('reads the outgoing proxy, whose password no error shows', () => {
    const read = (
      OUTBOUND_PROXY_URL: string,
      OUTBOUND_PROXY_RESOLVES_NAMES = '',
      OUTBOUND_NO_PROXY = '',
    ) =>
      readConfig({
        DATABASE_URL,
        DATA_DIR: createFolder(),
        OUTBOUND_PROXY_URL,
        OUTBOUND_PROXY_RESOLVES_NAMES,
        OUTBOUND_NO_PROXY,
      }).outboundProxy;
    expect(read('')).toBeNull();
    expect(read('http://proxy.internal:3128')).toEqual({
      host: 'proxy.internal',
      port: 3128,
      tls: false,
      login: null,
      resolvesNames: false,
      exceptions: { names: [], ranges: [] },
    });
    expect(read('https://me:p%2Fw@[::1]/', 'true', 'mail.example')).toEqual({
      host: '::1',
      port: 443,
      tls: true,
      login: { user: 'me', password: 'p/w' },
      resolvesNames: true,
      exceptions: { names: ['mail.example'], ranges: [] },
    });
    for (const wrong of [
      'socks5://proxy',
      'proxy:3128',
      'http://me:sesame@proxy/path',
      'http://me:s%esame@p',
    ]) {
      expect(() => read(wrong)).toThrow(/OUTBOUND_PROXY_URL: must (?!.*sesame)/);
    }
    expect(() => read('http://p', '', '*.example')).toThrow(/OUTBOUND_NO_PROXY: must be names/);
  });

  it('requires mail server and sender together', () => {
    const read = (SMTP_URL: string, MAIL_FROM = 'Inkpad <inkpad@shop.example>') =>
      readConfig({ DATABASE_URL, DATA_DIR: createFolder(), SMTP_URL, MAIL_FROM }).mail;
    const from = 'Inkpad <inkpad@shop.example>';
    expect(read('', '')).toBeNull();
    expect(read('smtp://mail.internal')).toEqual({
      from,
      bounceAddress: 'inkpad@shop.example',
      server: { host: 'mail.internal', port: 587, tls: false, login: null },
    });
    expect(read('smtps://me%40shop:p%2Fw@[::1]', 'inkpad@shop.example')).toEqual({
      from: 'inkpad@shop.example',
      bounceAddress: 'inkpad@shop.example',
      server: { host: '::1', port: 465, tls: true, login: { user: 'me@shop', password: 'p/w' } },
    });
    expect(read('smtp://127.0.0.1:25')?.server?.port).toBe(25);
    expect(() => read('smtp://mail', '')).toThrow(/SMTP_URL: needs MAIL_FROM/);
    expect(() => read('')).toThrow(/MAIL_FROM: needs SMTP_URL/);
    const withoutServer = { DATABASE_URL, DATA_DIR: createFolder(), MAIL_FROM: from };
    expect(readConfig(withoutServer, 'api').mail).toMatchObject({ from, server: null });
    expect(() => read('https://mail')).toThrow(/SMTP_URL: must be a URL/);
    expect(() => read('smtp://me:s%esame@mail')).toThrow(/SMTP_URL: must name a host(?!.*sesame)/);
    for (const wrong of [
      'inkpad',
      'Inkpad inkpad@shop.example',
      'a@b\nBcc: c@d',
      '<a@b>',
      'a@b, c@d',
    ]) {
      expect(() => read('smtp://mail', wrong)).toThrow(/MAIL_FROM: must be like/);
    }
  });

  it('takes a mailbox for bounces over TLS only, with a login', () => {
    const mail = { SMTP_URL: 'smtp://mail.internal', MAIL_FROM: 'a@shop.example' };
    const read = (BOUNCE_MAILBOX_URL: string, more: object = mail) =>
      readConfig({ DATABASE_URL, DATA_DIR: createFolder(), BOUNCE_MAILBOX_URL, ...more });
    expect(read('imaps://b%40shop.example:p%2Fw@mail.example').bounceMailbox).toEqual({
      host: 'mail.example',
      port: 993,
      folder: 'INBOX',
      login: { user: 'b@shop.example', password: 'p/w' },
    });
    const inFolder = read('imaps://b:c@[::1]:1993/Reports%20of%20mail');
    expect(inFolder.bounceMailbox).toMatchObject({ port: 1993, folder: 'Reports of mail' });
    expect(read('').bounceMailbox).toBeNull();
    const address = { ...mail, BOUNCE_ADDRESS: 'bounces@shop.example' };
    expect(read('', address).mail?.bounceAddress).toBe('bounces@shop.example');
    for (const pattern of ['bounces+{id}@shop.example', '{id}@bounces.shop.example'])
      expect(read('', { ...mail, BOUNCE_ADDRESS: pattern }).mail?.bounceAddress).toBe(pattern);
    for (const pattern of [
      `${'b'.repeat(29)}{id}@shop.example`,
      'b{id}{id}@shop.example',
      'b@{id}.example',
      'b{ID}@shop.example',
    ])
      expect(() => read('', { ...mail, BOUNCE_ADDRESS: pattern })).toThrow(/BOUNCE_ADDRESS: must/);
    for (const wrong of ['imap://b:c@mail', 'imaps://mail', 'imaps://b:%zzsesame@mail/']) {
      expect(() => read(wrong)).toThrow(/BOUNCE_MAILBOX_URL: must (?!.*sesame)/);
    }
    expect(() => read('imaps://b:c@mail', {})).toThrow(/BOUNCE_MAILBOX_URL: needs MAIL_FROM/);
  });

  it('accepts only the name of a host as SMTP_EHLO_NAME', () => {
    const read = (SMTP_EHLO_NAME: string) =>
      readConfig({ DATABASE_URL, DATA_DIR: createFolder(), SMTP_EHLO_NAME });
    expect(read('mail.shop.example').ehloName).toBe('mail.shop.example');
    for (const wrong of [
      'mail',
      '[127.0.0.1]',
      '192.0.2.1',
      'mail.shop.example.',
      'a b.example',
      '-a.example',
    ]) {
      expect(() => read(wrong)).toThrow(/SMTP_EHLO_NAME: must be a host name with a dot/);
    }
  });

  it('reads the security contact from an e-mail address or a URL', () => {
    const read = (SECURITY_CONTACT: string) =>
      readConfig({ DATABASE_URL, DATA_DIR: createFolder(), SECURITY_CONTACT }).securityContact;
    expect(read('')).toBeNull();
    expect(read('security@shop.example')).toBe('mailto:security@shop.example');
    expect(read('https://shop.example/report')).toBe('https://shop.example/report');
    for (const wrong of ['shop.example', 'http://shop.example', 'mailto:a@b', 'a@b\nExpires: x']) {
      expect(() => read(wrong)).toThrow(/SECURITY_CONTACT: must be an e-mail address or a URL/);
    }
  });

  it('reads the contact for users as a link with its text', () => {
    const read = (SUPPORT_CONTACT: string) =>
      readConfig({ DATABASE_URL, DATA_DIR: createFolder(), SUPPORT_CONTACT }).supportContact;
    expect(read('')).toBeNull();
    expect(read('help@shop.example')).toEqual({
      href: 'mailto:help@shop.example',
      text: 'help@shop.example',
    });
    expect(read('https://shop.example/help')?.href).toBe('https://shop.example/help');
    expect(() => read('shop.example')).toThrow(/SUPPORT_CONTACT: must be an e-mail address/);
  });

  it('requires https of an identity provider, except on 127.0.0.1', () => {
    const read = (changes: Record<string, string>) =>
      readConfig({ DATABASE_URL, DATA_DIR: createFolder(), ...changes }).oidc;
    const oidc = { OIDC_ISSUER: 'https://login.company.example/', OIDC_CLIENT_ID: 'inkpad' };
    expect(read(oidc)).toEqual({
      issuer: 'https://login.company.example/',
      clientId: 'inkpad',
      clientSecret: null,
      areEmailsConfirmed: false,
    });
    expect(read({ ...oidc, OIDC_EMAILS_CONFIRMED: 'true' })?.areEmailsConfirmed).toBe(true);
    expect(read({ ...oidc, OIDC_ISSUER: 'http://127.0.0.1:9/' })).not.toBeNull();
    expect(() => read({ ...oidc, OIDC_ISSUER: 'http://login.company.example' })).toThrow(
      /OIDC_ISSUER: must start with https/,
    );
    expect(() => read({ OIDC_ISSUER: oidc.OIDC_ISSUER })).toThrow(/needs OIDC_CLIENT_ID/);
    expect(() => read({ OIDC_CLIENT_ID: 'inkpad' })).toThrow(/OIDC_CLIENT_ID: needs OIDC_ISSUER/);
    expect(() => read({ OIDC_CLIENT_SECRET: 'x' })).toThrow(/SECRET: needs OIDC_ISSUER/);
  });

  it('reads the database URLs of a running service', () => {
    const dataDir = createFolder();
    expect(() => readConfig({ DATA_DIR: dataDir })).toThrow(ConfigError);
    writeFileSync(join(dataDir, 'run.json'), JSON.stringify({ postgres: { url: DATABASE_URL } }));
    expect(readConfig({ DATA_DIR: dataDir }).databaseUrl).toBe(DATABASE_URL);
    expect(readConfig({ DATA_DIR: dataDir }).databaseMigrationUrl).toBe(DATABASE_URL);
    const postgres = { url: DATABASE_URL, owner_url: 'postgres://owner:p@localhost:5432/x' };
    writeFileSync(join(dataDir, 'run.json'), JSON.stringify({ postgres }));
    expect(readConfig({ DATA_DIR: dataDir })).toMatchObject({
      databaseUrl: postgres.url,
      databaseMigrationUrl: postgres.owner_url,
    });
  });

  it('reads the public URL of a running service, unless another is set', () => {
    const DATA_DIR = createFolder();
    const run = { base_url: 'http://localhost:4000', postgres: { url: DATABASE_URL } };
    writeFileSync(join(DATA_DIR, 'run.json'), JSON.stringify(run));
    expect(readConfig({ DATA_DIR }).publicUrl).toBe('http://localhost:4000');
    const PUBLIC_URL = 'https://cards.example';
    expect(readConfig({ DATA_DIR, PUBLIC_URL }).publicUrl).toBe(PUBLIC_URL);
    expect(readConfig({ DATA_DIR, DATABASE_URL }).publicUrl).toBe('http://localhost:3000');
  });

  it.each(['https://cards.example/?a=1', 'https://cards.example?', 'https://me@cards.example'])(
    'refuses a public URL that no path can be appended to: %s',
    (PUBLIC_URL) => {
      expect(() => readConfig({ PUBLIC_URL })).toThrow('PUBLIC_URL: must have no login or query');
    },
  );

  const ACCOUNT = { type: 'service_account', client_email: 'a@b.example', private_key_id: '1' };
  const urls: [string, string][] = [
    ['PUBLIC_URL', 'https://cards.example'],
    ['DATABASE_URL', DATABASE_URL],
    ['DATABASE_MIGRATION_URL', DATABASE_URL],
    ['EVENT_STORE_URL', 'esdb://n1:2113'],
    ['REDIS_URL', 'redis://cache:6379/1'],
    ['SMTP_URL', 'smtps://mail.example'],
    ['OUTBOUND_PROXY_URL', 'http://proxy.example:3128'],
    ['SMS_URL', 'https://sms.example/x'],
    ['APNS_URL', 'https://push.example'],
    ['GOOGLE_WALLET_URL', 'https://wallet.example/v1'],
    ['OIDC_ISSUER', 'https://login.example'],
    ['GEOCODER_URL', 'https://maps.example/v1'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://traces.example:4318'],
    ['CORS_ORIGINS', 'https://shop.example'],
  ];

  it.each(urls)('refuses a %s that a parser would have to repair', (name, url) => {
    const getError = (text: string) => {
      try {
        readConfig({ DATABASE_URL, DATA_DIR: createFolder(), [name]: text });
      } catch (error) {
        return String(error);
      }
      return '';
    };
    expect(getError(url)).not.toContain(`${name}: must be`);
    // White space and invisible characters around the origins of a list are removed.
    const ends = name === 'CORS_ORIGINS' ? [] : ['\r', '\n', '\t', ' ', '\u200b'];
    for (const text of [
      ...ends.flatMap((end) => [`${url}${end}`, `${end}${url}`]),
      `${url}#part`,
      `${url}#`,
      `${url.slice(0, 9)}\u0001${url.slice(9)}`,
      url.replace('://', ':'),
      url.replace('://', ':\\\\'),
      url.replace('://', ':/\t/'),
      url.replace(/^(..)/, '$1\n'),
    ]) {
      expect([text, getError(text)]).toEqual([text, expect.stringContaining(`${name}: must be`)]);
    }
    if (/EVENT_STORE|CORS/.test(name)) return;
    const { hostname } = new URL(url);
    const urlWithDot = url.replace(hostname, `${hostname}.`);
    expect([urlWithDot, getError(urlWithDot)]).toEqual([
      urlWithDot,
      expect.stringContaining(`${name}: must name`),
    ]);
  });

  it('refuses a token_uri that a parser would have to repair', () => {
    for (const token_uri of [
      'https://oauth.example/token\r',
      'https://oauth.example./token',
      'x',
    ]) {
      const GOOGLE_WALLET_KEY = JSON.stringify({ ...ACCOUNT, token_uri });
      expect(() => readConfig({ DATABASE_URL, GOOGLE_WALLET_KEY })).toThrow(/"token_uri"/);
    }
  });

  it('normalizes URLs without adding a slash', () => {
    const read = (PUBLIC_URL: string) =>
      readConfig({ DATABASE_URL, DATA_DIR: createFolder(), PUBLIC_URL }).publicUrl;
    expect(read('HTTPS://Cards.Example:443')).toBe('https://cards.example');
    expect(read('https://müller.example/a/../loyalty/')).toBe(
      'https://xn--mller-kva.example/loyalty',
    );
    const { oidc, otlpEndpoint } = readConfig({
      DATABASE_URL,
      DATA_DIR: createFolder(),
      OIDC_ISSUER: 'https://LOGIN.example/tenant/',
      OIDC_CLIENT_ID: 'inkpad',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'HTTP://traces.example:80',
    });
    expect([oidc?.issuer, otlpEndpoint]).toEqual([
      'https://login.example/tenant/',
      'http://traces.example',
    ]);
  });

  it('accepts origins as browsers send them, and no patterns', () => {
    const read = (CORS_ORIGINS: string) =>
      readConfig({ DATABASE_URL, DATA_DIR: createFolder(), CORS_ORIGINS }).corsOrigins;
    const right = [
      'https://shop.example',
      'http://localhost:5173',
      'https://[::1]:8443',
      'capacitor://localhost',
      'ionic://localhost',
      'tauri://localhost',
      'app://localhost:8080',
      'chrome-extension://nmmhkkegccagdldgiimedpiccmgmieda',
      'moz-extension://0f5a2b2c-7c8f-4b0d-9a1e-0d9c6d1f2a3b',
      'com.example.till+1://till',
    ];
    expect(read(right.join(', '))).toEqual(right);
    expect(read('*')).toEqual(['*']);
    for (const wrong of [
      'https://*.x',
      'https://*.shop.example',
      'https://shop.*',
      'https://*',
      '*.shop.example',
      'https://shop.example/',
      'https://shop.example:443',
      'https://Shop.example',
      'https://müller.example',
      'https://(a|b).example',
      'null',
      'capacitor://',
      'capacitor:localhost',
      'capacitor://localhost/',
      'capacitor://localhost/app',
      'capacitor://localhost?x',
      'capacitor://localhost#x',
      'capacitor://user@localhost',
      'capacitor://user:secret@localhost',
      'capacitor://localhost:',
      'capacitor://localhost:x',
      'capacitor://*',
      'Capacitor://localhost',
      '*://localhost',
      '1app://localhost',
      'file:///',
      'file://',
      'data:text/html,x',
      'https://shop.example,',
    ]) {
      expect(() => read(wrong)).toThrow(/CORS_ORIGINS: must be/);
    }
  });

  it('creates a master key once, readable by its owner only', () => {
    const dataDir = createFolder();
    const first = readConfig({ DATABASE_URL, DATA_DIR: dataDir }).masterKey;
    expect(first).toHaveLength(32);
    expect(readConfig({ DATABASE_URL, DATA_DIR: dataDir }).masterKey.equals(first)).toBe(true);
    expect(statSync(join(dataDir, 'master.key')).mode & 0o777).toBe(0o600);
  });

  it('requires a master key in production', () => {
    const production = { DATABASE_URL, DATA_DIR: createFolder(), NODE_ENV: 'production' };
    expect(() => readConfig(production)).toThrow(/MASTER_KEY must be set/);
    expect(readConfig(production, 'migrate').masterKey).toHaveLength(0);
    expect(() => readConfig({ ...production, MASTER_KEY: 'short' })).toThrow(/MASTER_KEY/);
  });

  it('reads every secret from a file or the environment, not both', () => {
    const dataDir = createFolder();
    const file = (name: string, content: string) => {
      writeFileSync(join(dataDir, name), content);
      return join(dataDir, name);
    };
    const key = Buffer.alloc(32, 5);
    const previous = Buffer.alloc(32, 6);
    const config = readConfig({
      DATA_DIR: dataDir,
      DATABASE_URL_FILE: file('database', `${DATABASE_URL}\n`),
      DATABASE_MIGRATION_URL_FILE: file('owner', 'postgres://o:p@localhost/x'),
      EVENT_STORE_URL_FILE: file('events', 'esdb://a:b@localhost:2113'),
      MASTER_KEY_FILE: file('key', `${key.toString('base64')}\n`),
      MASTER_KEY_PREVIOUS_FILE: file('previous', previous.toString('base64')),
      REDIS_URL_FILE: file('redis', 'redis://:p@localhost'),
      SMTP_URL_FILE: file('smtp', 'smtp://u:p@mail'),
      MAIL_FROM: 'inkpad@shop.example',
      SMS_URL: 'https://sms.example',
      SMS_ACCOUNT: 'AC1',
      SMS_TOKEN_FILE: file('sms', 'sesame\n'),
      SMS_FROM: 'Inkpad',
    });
    expect(config).toMatchObject({
      databaseUrl: DATABASE_URL,
      databaseMigrationUrl: 'postgres://o:p@localhost/x',
      eventStoreUrl: 'esdb://a:b@localhost:2113',
      masterKey: key,
      masterKeyPrevious: previous,
      masterKeyFile: null,
      redisUrl: 'redis://:p@localhost',
      mail: { server: { login: { user: 'u', password: 'p' } } },
      sms: { token: 'sesame' },
    });
    const files = { REDIS_URL_FILE: '/nowhere/redis', MASTER_KEY_FILE: file('empty', ' \n') };
    expect(findErrors({ ...files, SMTP_URL: 'smtp://m', SMTP_URL_FILE: 'x' })).toEqual(
      expect.arrayContaining([
        expect.stringContaining(
          'REDIS_URL_FILE: /nowhere/redis cannot be read: it does not exist (ENOENT)',
        ),
        expect.stringMatching(/MASTER_KEY_FILE: .*empty is empty/),
        expect.stringContaining('SMTP_URL_FILE: SMTP_URL is set as well; set one of the two'),
      ]),
    );
  });

  it.each([
    [{ MASTER_KEY_PREVIOUS: KEY }, /MASTER_KEY_PREVIOUS: needs MASTER_KEY/],
    [{ MASTER_KEY: KEY, MASTER_KEY_PREVIOUS: KEY }, /MASTER_KEY_PREVIOUS: is the same key/],
    [{ MASTER_KEY_PREVIOUS: 'short' }, /MASTER_KEY_PREVIOUS: must be 32 bytes/],
  ])('refuses an invalid previous master key: %j', (environment, message) => {
    expect(findErrors(environment).join()).toMatch(message);
  });

  const findErrors = (environment: NodeJS.ProcessEnv) => {
    try {
      readConfig({ DATABASE_URL, DATA_DIR: createFolder(), ...environment });
    } catch (error) {
      if (error instanceof ConfigError) return error.message.split('\n').slice(1);
      throw error;
    }
    return [];
  };

  it.each([
    ['2027-02-01', undefined, []],
    ['2027-02-01', '2028-02-01', []],
    ['2027-02-01T12:00:00+01:00', '2028-02-01T11:00:00Z', []],
    ['2027-02-01', '2028-01-31', [/SUNSET_DATE.*twelve months/]],
    ['2027-02-01T12:00:00Z', '2028-02-01', [/SUNSET_DATE.*twelve months/]],
    ['2027-02-01', '2027-01-31', [/SUNSET_DATE.*before/]],
    [undefined, '2028-02-01', [/SUNSET_DATE.*needs API_V1_DEPRECATION_DATE/]],
    ['soon', 'later', [/API_V1_DEPRECATION_DATE.*ISO/, /API_V1_SUNSET_DATE.*ISO/]],
    ['2027-02-30', undefined, [/API_V1_DEPRECATION_DATE.*ISO/]],
    [undefined, 'later', [/API_V1_SUNSET_DATE.*ISO/, /needs API_V1_DEPRECATION_DATE/]],
  ])(
    'checks the dates of v1: deprecated from %s, retired from %s',
    (deprecationDate, sunsetDate, messages) => {
      const errors = findErrors({
        API_V1_DEPRECATION_DATE: deprecationDate,
        API_V1_SUNSET_DATE: sunsetDate,
      });
      expect(errors).toEqual(messages.map((message) => expect.stringMatching(message)));
    },
  );

  it('reports an invalid sunset date together with all other errors', () => {
    const errors = findErrors({
      PORT: 'x',
      API_V1_SUNSET_DATE: '2028-02-01',
      REDIS_URL: 'http://x',
    });
    expect(errors).toHaveLength(3);
  });

  it.each([
    ['*', ['*']],
    [
      'https://shop.example, http://localhost:5173',
      ['https://shop.example', 'http://localhost:5173'],
    ],
  ])('reads the CORS origins %j', (text, corsOrigins) => {
    const config = readConfig({ DATABASE_URL, DATA_DIR: createFolder(), CORS_ORIGINS: text });
    expect(config.corsOrigins).toEqual(corsOrigins);
  });

  it.each(['shop.example', 'https://shop.example/', 'https://shop.example/app', '*,', 'null'])(
    'refuses the CORS origins %j',
    (text) => {
      expect(findErrors({ CORS_ORIGINS: text })).toEqual([expect.stringContaining('CORS_ORIGINS')]);
    },
  );
});

describe('a password with special characters that are not percent-encoded', () => {
  const URLS = {
    DATABASE_URL: (secret: string) => `postgres://user:${secret}@db.example:5432/inkpad`,
    REDIS_URL: (secret: string) => `redis://user:${secret}@cache.example:6379/1`,
    SMTP_URL: (secret: string) => `smtps://user:${secret}@mail.example`,
    EVENT_STORE_URL: (secret: string) => `kurrentdb://user:${secret}@events.example:2113`,
    OUTBOUND_PROXY_URL: (secret: string) => `http://user:${secret}@proxy.example:3128`,
  };

  it.each(
    Object.entries(URLS).flatMap(([setting, toUrl]) =>
      ['Ge/heim', '12/34', 'Ge@heim/wort', 'Ge?heim', '12?34', 'Ge#heim', 'Ge%heim', 'Ge%zz'].map(
        (secret) => [setting, secret, toUrl(secret)] as const,
      ),
    ),
  )('in %s (%s) is refused with what to do, and no part of it is shown', (setting, secret, url) => {
    const settings = { DATABASE_URL, DATA_DIR: createFolder(), MAIL_FROM: 'inkpad@shop.example' };
    let message = 'accepted';
    try {
      readConfig({ SMTP_URL: 'smtp://mail.example', ...settings, [setting]: url });
    } catch (error) {
      if (error instanceof ConfigError) ({ message } = error);
    }
    expect(message).toContain(`${setting}: must`);
    expect(message).toMatch(/%40.* for special characters of name and password/);
    for (const part of secret.split(/[/@?#%]/).filter((text) => text !== 'zz')) {
      expect(message.replaceAll(/%\d\w/g, '')).not.toContain(part);
    }
  });
});
