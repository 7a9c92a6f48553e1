import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CORE_SCHEMA, load, loadAll, mergeTag } from 'js-yaml';
import { readConfig } from '#configuration/config.js';
import { METRICS_PORTS } from '#platform/kernel/process-name.js';
import { VERSION } from '#platform/kernel/version.js';

const CHART = 'deploy/helm/inkpad';
/** The oldest version that Chart.yaml accepts, and the newest that the validator knows. */
const KUBERNETES_VERSIONS = ['1.29', '1.37'];
const VALIDATOR = 'kubernetes-validate==1.37.0';
const INSTALL_MS = 300_000;
/** Helm that was built from source does not know the version of its own libraries. */
const KUBE_VERSION = '--kube-version=1.34.0';
const PUBLIC_URL = '--set=settings.PUBLIC_URL=https://cards.example';
const ALL_VALUES = '--values=test/deployment/kubernetes/values.yaml';
/** When a process exits after SIGTERM, whatever hangs (docs/operating/monitor.md). */
const SHUTDOWN_SECONDS = 15;

type Labels = Record<string, string>;
type Variable = {
  name: string;
  value?: string;
  valueFrom?: { secretKeyRef: { name: string; key: string; optional?: boolean } };
};
type Port = { name: string; containerPort: number };
type Container = {
  name: string;
  image: string;
  command: string[];
  env: Variable[];
  ports?: Port[];
  securityContext: object;
  lifecycle?: { preStop: { exec: { command: string[] } } };
  [probe: `${string}Probe`]: { httpGet: { path: string; port: string } };
};
type Pod = {
  metadata: { labels: Labels };
  spec: {
    containers: Container[];
    terminationGracePeriodSeconds?: number;
    topologySpreadConstraints?: { labelSelector: { matchLabels: Labels } }[];
  };
};
type Rules = { groups: { name: string; interval: string; rules: { alert: string }[] }[] };
type Manifest = {
  kind: string;
  metadata: { name: string; labels: Labels; annotations?: Labels };
  spec: {
    replicas?: number;
    template?: Pod;
    selector?: Labels & { matchLabels?: Labels };
    podSelector?: { matchLabels: Labels };
    ports?: { name: string; targetPort: string }[];
    scaleTargetRef?: { kind: string; name: string };
    rules?: { http: { paths: { backend: { service: { name: string } } }[] } }[];
  } & Partial<Rules>;
  data?: Record<string, string>;
};
type Compose = { services: Record<string, { environment: Record<string, unknown> }> };

const SECRETS: Record<string, string> = {
  DATABASE_URL: 'postgres://inkpad_app:processes@db.example/inkpad',
  DATABASE_MIGRATION_URL: 'postgres://inkpad:0wner@db.example/inkpad',
  MASTER_KEY: Buffer.alloc(32, 3).toString('base64'),
};

function helm(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const { error, status, stdout, stderr } = spawnSync('helm', args, { encoding: 'utf8' });
  if (error) throw new Error('helm is missing: go install helm.sh/helm/v3/cmd/helm@latest');
  return { status, stdout, stderr };
}

/** Runs a program. @throws Error with its output unless it exits with 0 */
function run(program: string, ...args: string[]): void {
  const { error, status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (error || status !== 0) throw new Error(`${program}: ${stdout}${stderr}`, { cause: error });
}

function render(...options: string[]): Manifest[] {
  const { status, stdout, stderr } = helm('template', 'shop', CHART, KUBE_VERSION, ...options);
  if (status !== 0) throw new Error(stderr);
  return (loadAll(stdout) as (Manifest | null)[]).filter((manifest) => manifest !== null);
}

function findPods(manifests: Manifest[]): Map<string, Pod> {
  return new Map(
    manifests.flatMap(({ spec }) =>
      spec?.template ? [[getContainer(spec.template).name, spec.template] as const] : [],
    ),
  );
}

function getPod(manifests: Manifest[], process: string): Pod {
  const pod = findPods(manifests).get(process);
  if (!pod) throw new Error(`there is no ${process}`);
  return pod;
}

function getContainer({ spec: { containers } }: Pod): Container {
  const [container, ...others] = containers;
  if (!container || others.length > 0) throw new Error('a pod has another number of containers');
  return container;
}

function listVariables(pod: Pod): string[] {
  const names = getContainer(pod).env.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  return names.sort();
}

/** Builds the environment of a process from what a Secret with only these keys provides. */
function buildEnvironment(pod: Pod, secrets: Record<string, string>): NodeJS.ProcessEnv {
  const ofImage = { NODE_ENV: 'production', DATA_DIR: '/data', MONITORING_HOST: '0.0.0.0' };
  const entries = getContainer(pod).env.flatMap(({ name, value, valueFrom }) => {
    if (!valueFrom) return [[name, value] as const];
    const secret = secrets[valueFrom.secretKeyRef.key];
    if (secret === undefined && !valueFrom.secretKeyRef.optional) throw new Error(`no ${name}`);
    return secret === undefined ? [] : [[name, secret] as const];
  });
  return { ...ofImage, ...Object.fromEntries(entries) };
}

function isSelected(selector: Labels, labels: Labels): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}

let standard: Manifest[];
let complete: Manifest[];
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'inkpad-kubernetes-'));
  standard = render(PUBLIC_URL);
  complete = render(ALL_VALUES);
  run('python3', '-m', 'venv', join(folder, 'python'));
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', VALIDATOR];
  run(join(folder, 'python/bin/python'), ...install);
}, INSTALL_MS);
afterAll(() => rmSync(folder, { recursive: true }));

describe('the Helm chart', () => {
  it.each([PUBLIC_URL, ALL_VALUES])('passes helm lint with %s', (values) => {
    const { status, stdout } = helm('lint', '--strict', CHART, KUBE_VERSION, values);
    expect(stdout).toContain('0 chart(s) failed');
    expect(status).toBe(0);
  });

  it('refuses an unknown setting, and a missing PUBLIC_URL', () => {
    const unknown = helm('template', CHART, KUBE_VERSION, PUBLIC_URL, '--set=settings.PUBLIK=1');
    expect([unknown.status, unknown.stderr]).toEqual([1, expect.stringContaining("'PUBLIK'")]);
    const missing = helm('template', CHART, KUBE_VERSION);
    expect([missing.status, missing.stderr]).toEqual([
      1,
      expect.stringContaining('settings.PUBLIC_URL is required'),
    ]);
  });

  it('has the version of Inkpad', () => {
    expect(load(readFileSync(`${CHART}/Chart.yaml`, 'utf8'))).toMatchObject({
      appVersion: VERSION,
    });
    const { image } = getContainer(getPod(standard, 'api'));
    expect(image).toBe(`ghcr.io/example/inkpad:${VERSION}`);
    expect(getContainer(getPod(complete, 'api')).image).toMatch(/inkpad@sha256:0000$/);
  });

  it.each(KUBERNETES_VERSIONS)('renders what Kubernetes %s accepts', (version) => {
    const files = [PUBLIC_URL, ALL_VALUES].map((values, i) => {
      const file = join(folder, `${i}.yaml`);
      writeFileSync(file, helm('template', CHART, KUBE_VERSION, values).stdout);
      return file;
    });
    const { status, stdout, stderr } = spawnSync(
      join(folder, 'python/bin/kubernetes-validate'),
      ['--strict', '--quiet', '--no-warn', '--kubernetes-version', version, ...files],
      { encoding: 'utf8' },
    );
    expect(stdout + stderr).toBe('');
    expect(status).toBe(0);
  });

  it('has copies and manifests for Kustomize that are up to date', () => {
    const { status, stderr } = spawnSync(process.execPath, ['deploy/generate.mjs', '--check'], {
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([0, '']);
  });
});

describe('the processes in Kubernetes', () => {
  it.each(['api', 'dispatcher', 'migrate', 'event-store-access'])(
    'give %s the variables that docker-compose.yml gives it, and no others',
    (name) => {
      const schema = CORE_SCHEMA.withTags(mergeTag);
      const { services } = load(readFileSync('docker-compose.yml', 'utf8'), { schema }) as Compose;
      const { properties } = JSON.parse(readFileSync(`${CHART}/values.schema.json`, 'utf8')) as {
        properties: { settings: { properties: object } };
      };
      const settings = Object.keys(properties.settings.properties).filter(
        // Compose needs neither: a container has all addresses in IPv4.
        (setting) => setting !== 'HOST' && setting !== 'MONITORING_HOST',
      );
      const pods = render(
        ...settings.map((setting) => `--set=settings.${setting}=1`),
        '--set=eventStoreAccess.enabled=true,dispatcher.checkpointsClaim=checkpoints',
      );
      const expected = Object.keys(services[name]?.environment ?? {});
      expect(listVariables(getPod(pods, name))).toEqual(expected.sort());
    },
  );

  it('start with a Secret that has only what is required', () => {
    const migrate = readConfig(buildEnvironment(getPod(standard, 'migrate'), SECRETS), 'migrate');
    expect(migrate.databaseMigrationUrl).toBe(SECRETS['DATABASE_MIGRATION_URL']);
    for (const name of ['api', 'dispatcher'] as const) {
      const scope = name === 'api' ? name : undefined;
      const config = readConfig(buildEnvironment(getPod(standard, name), SECRETS), scope);
      expect(config).toMatchObject({
        isProduction: true,
        publicUrl: 'https://cards.example',
        trustProxyHops: 1,
        databaseUrl: SECRETS['DATABASE_URL'],
      });
      expect(config.databaseMigrationUrl).not.toContain('0wner');
    }
  });

  it('write whole numbers as such, and leave out settings that are null', () => {
    const { env } = getContainer(getPod(complete, 'api'));
    expect(env).toContainEqual({ name: 'MAX_OPEN_CARDS', value: '1000000' });
    expect(env.map(({ name }) => name)).not.toContain('LOG_LEVEL');
  });

  describe('with numbers in a values file', () => {
    const renderValues = (values: string) => {
      const file = join(folder, 'numbers.yaml');
      writeFileSync(file, values);
      const options = [KUBE_VERSION, PUBLIC_URL, `--values=${file}`];
      const { status, stdout, stderr } = helm('template', 'shop', CHART, ...options);
      if (status !== 0) return stderr;
      const manifests = (loadAll(stdout) as (Manifest | null)[]).filter(
        (manifest) => manifest !== null,
      );
      return getContainer(getPod(manifests, 'api')).env;
    };

    it.each([
      ['GOOGLE_WALLET_ISSUER_ID', '3388000000022305927'],
      ['GOOGLE_WALLET_ISSUER_ID', '3388'],
      ['GOOGLE_WALLET_ID_SUFFIX', '0755'],
      ['SMS_ACCOUNT', '1E5'],
      ['SMS_FROM', '+4915112345678'],
      ['SMS_FROM', '0x10'],
      ['SMS_FROM', 'true'],
      ['OIDC_CLIENT_ID', '1234567890'],
      ['MAIL_FROM', 'off'],
      ['OTEL_TRACES_SAMPLER_ARG', '0.25'],
      ['OTEL_TRACES_SAMPLER_ARG', '1'],
      ['MAX_OPEN_CARDS', '0.5'],
      ['MAX_OPEN_CARDS', '9007199254740992'],
      ['MAX_OPEN_CARDS', '1e300'],
      ['MAX_OPEN_CARDS', 'true'],
      ['TRUST_PROXY_HOPS', '1.5'],
    ])('refuse %s: %s, and keep it in quotation marks', (name, value) => {
      const error = renderValues(`settings: { ${name}: ${value} }`);
      expect(error).toEqual(expect.stringMatching(`settings.${name}`));
      const env = renderValues(`settings: { ${name}: '${value}' }`);
      expect(env).toContainEqual({ name, value });
    });

    it.each([
      ['MAX_OPEN_CARDS', '1000000', '1000000'],
      ['MAX_OPEN_CARDS', '1e6', '1000000'],
      ['MAX_OPEN_CARDS', '9007199254740991', '9007199254740991'],
      ['TRUST_PROXY_HOPS', '0', '0'],
    ])('keep %s: %s', (name, value, text) => {
      expect(renderValues(`settings: { ${name}: ${value} }`)).toContainEqual({ name, value: text });
    });

    it('keep what --set says, which is exact', () => {
      const pods = render(PUBLIC_URL, '--set=settings.GOOGLE_WALLET_ISSUER_ID=3388000000022305927');
      expect(getContainer(getPod(pods, 'api')).env).toContainEqual({
        name: 'GOOGLE_WALLET_ISSUER_ID',
        value: '3388000000022305927',
      });
    });

    it.each([
      'image: { tag: 1.10 }',
      'image: { digest: 1e5 }',
      'podLabels: { version: 1.10 }',
      'podAnnotations: { example/number: 0755 }',
      'nodeSelector: { rack: 010 }',
      'api: { extraEnv: [{ name: NODE_ENV_ID, value: 3388000000022305927 }] }',
      'api: { extraEnv: [{ name: RATIO, value: 0.25 }] }',
      'api: { replicas: 2.5 }',
      'api: { drainSeconds: 1.5 }',
      'api: { service: { port: 80.5 } }',
      'dispatcher: { extraEnv: [{ name: DEBUG, value: yes }] }',
      'dispatcher: { replicas: 1e300 }',
      'ingress: { annotations: { example/size: 8 } }',
    ])('refuse %s', (values) => {
      expect(renderValues(values)).toEqual(expect.stringContaining("values don't meet"));
    });
  });

  it('listen on the ports that their probes, services and policies name', () => {
    const { port, healthPort } = readConfig(
      buildEnvironment(getPod(standard, 'dispatcher'), SECRETS),
    );
    const listPorts = (name: string) =>
      getContainer(getPod(standard, name)).ports?.map((exposedPort) => [
        exposedPort.name,
        exposedPort.containerPort,
      ]);
    expect(listPorts('api')).toEqual([
      ['http', port],
      ['metrics', METRICS_PORTS.api],
    ]);
    expect(listPorts('dispatcher')).toEqual([
      ['health', healthPort],
      ['metrics', METRICS_PORTS.dispatcher],
    ]);
    for (const [name, main] of [
      ['api', 'http'],
      ['dispatcher', 'health'],
    ] as const) {
      const container = getContainer(getPod(standard, name));
      expect(container.startupProbe?.httpGet).toEqual({ path: '/health/live', port: main });
      expect(container.livenessProbe?.httpGet).toEqual({ path: '/health/live', port: main });
      expect(container.readinessProbe?.httpGet).toEqual({ path: '/health/ready', port: main });
    }
  });

  it('are programs of the build, and get the time that they need to stop', () => {
    for (const pod of findPods(complete).values()) {
      const [program, file = ''] = getContainer(pod).command;
      expect([program, file, existsSync(file)]).toEqual(['node', file, true]);
    }
    for (const name of ['api', 'dispatcher']) {
      const pod = getPod(standard, name);
      const [, seconds = '0'] = getContainer(pod).lifecycle?.preStop.exec.command ?? [];
      expect(pod.spec.terminationGracePeriodSeconds).toBeGreaterThan(
        SHUTDOWN_SECONDS + Number(seconds),
      );
    }
  });

  it('run as another user than root, on a read-only file system, without access to the cluster', () => {
    const pods = findPods(complete);
    expect([...pods.keys()].sort()).toEqual(['api', 'dispatcher', 'event-store-access', 'migrate']);
    for (const pod of pods.values()) {
      expect(pod.spec).toMatchObject({
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      });
      expect(getContainer(pod).securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    }
  });
});

describe('the other objects in Kubernetes', () => {
  it('select the pods of exactly one process', () => {
    const pods = [...findPods(complete).values()];
    const selectors = complete.flatMap(({ kind, metadata, spec }) => {
      if (!spec || kind === 'ServiceMonitor') return [];
      const selector = spec.podSelector?.matchLabels ?? spec.selector?.matchLabels ?? spec.selector;
      const ofPod = spec.template?.spec.topologySpreadConstraints ?? [];
      return [selector, ...ofPod.map(({ labelSelector }) => labelSelector.matchLabels)].flatMap(
        (labels) =>
          labels ? [{ name: `${kind} ${metadata.name}`, labels: labels as Labels }] : [],
      );
    });
    expect(selectors.length).toBeGreaterThan(14);
    for (const { name, labels } of selectors) {
      const selected = pods.filter(({ metadata }) => isSelected(labels, metadata.labels));
      const { name: process = '' } = selected[0]?.spec.containers[0] ?? {};
      expect([name, selected.length]).toEqual([expect.stringContaining(process), 1]);
    }
  });

  it('refer to objects that are there', () => {
    const names = new Set(complete.map(({ kind, metadata }) => `${kind} ${metadata.name}`));
    expect(names.size).toBe(complete.length);
    const references = complete.flatMap(({ spec }) => [
      ...(spec?.scaleTargetRef ? [`Deployment ${spec.scaleTargetRef.name}`] : []),
      ...(spec?.rules ?? []).flatMap(({ http }) =>
        http.paths.map(({ backend }) => `Service ${backend.service.name}`),
      ),
    ]);
    expect(references).toHaveLength(3);
    expect(references.filter((reference) => !names.has(reference))).toEqual([]);
  });

  it('leave the number of replicas to the autoscaler', () => {
    const getReplicas = (manifests: Manifest[]) =>
      manifests.filter(({ kind }) => kind === 'Deployment').map(({ spec }) => spec.replicas);
    expect(getReplicas(standard)).toEqual([2, 2]);
    expect(getReplicas(complete)).toEqual([undefined, undefined]);
  });

  it('let Prometheus read the metrics of both processes', () => {
    const monitor = complete.find(({ kind }) => kind === 'ServiceMonitor');
    const selector = monitor?.spec.selector?.matchLabels ?? {};
    const services = complete.filter(
      ({ kind, metadata }) => kind === 'Service' && isSelected(selector, metadata.labels),
    );
    expect(services.map(({ metadata }) => metadata.name)).toEqual([
      'shop-inkpad-api-metrics',
      'shop-inkpad-dispatcher-metrics',
    ]);
    for (const { spec } of services) expect(spec.ports?.[0]?.targetPort).toBe('metrics');
  });

  it('alert by deploy/alerts.yml, without the alerts that are turned off', () => {
    const rule = complete.find(({ kind }) => kind === 'PrometheusRule');
    const { groups } = load(readFileSync('deploy/alerts.yml', 'utf8')) as Rules;
    const expected = groups.map(({ rules, ...group }) => ({
      ...group,
      rules: rules.filter(({ alert }) => alert !== 'HistoryIsNotSigned'),
    }));
    expect(rule?.spec.groups).toEqual(expected);
  });

  it('show deploy/grafana/dashboard.json', () => {
    const { data = {} } = complete.find(({ kind }) => kind === 'ConfigMap') ?? {};
    expect(JSON.parse(data['inkpad.json'] ?? '')).toEqual(
      JSON.parse(readFileSync('deploy/grafana/dashboard.json', 'utf8')),
    );
  });

  it('run migrations before the processes change, and allow their connections before that', () => {
    const hooks = complete.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook']);
    const before = 'pre-install,pre-upgrade';
    expect(
      hooks.map(({ kind, metadata: { annotations = {} } }) => [
        kind,
        annotations['helm.sh/hook'],
        annotations['helm.sh/hook-weight'],
      ]),
    ).toEqual([
      ['NetworkPolicy', before, '-5'],
      ['NetworkPolicy', before, '-5'],
      ['Job', before, undefined],
      ['Job', before, undefined],
    ]);
  });
});
