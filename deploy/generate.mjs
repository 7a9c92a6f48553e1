/**
 * Generates what follows from other files: the copies in the Helm chart, the settings that its values accept, and
 * the manifests in deploy/kustomize. Needs a build and Helm. With --check it writes nothing and fails on a difference.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { dump, loadAll } from 'js-yaml';
import { SECRET_SETTINGS } from '../dist/libs/configuration/secret-files.js';
import { kinds } from '../dist/libs/platform/kernel/setting-decorators.js';
import { SETTINGS } from '../dist/libs/configuration/settings.js';
import { RUNTIME_VARIABLES } from '../dist/tools/generate/env-example.js';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const CHART = 'deploy/helm/inkpad';
/** Settings that are not in `settings` of the chart's values, and why. */
const EXCLUDED = {
  NODE_ENV: 'set in the image',
  DATA_DIR: 'set in the image',
  PORT: 'the port of the container',
  HEALTH_PORT: 'the port of the container',
  METRICS_PORT: 'the port of the container',
  CHECKPOINT_DIR: 'follows from dispatcher.checkpointsClaim',
  WEBHOOK_ALLOW_INSECURE_TARGETS: 'development only',
  WEB_PUSH_ALLOW_INSECURE_ENDPOINTS: 'development only',
  WEBHOOK_TIME_SCALE: 'tests only',
};
const CHART_SETTINGS = [...SETTINGS, ...Object.keys(RUNTIME_VARIABLES)]
  .filter((name) => !(name in EXCLUDED) && !SECRET_SETTINGS.includes(name))
  .sort();
const HEADER = '# Generated from deploy/helm/inkpad by deploy/generate.mjs. Do not edit.\n';

const files = {
  [`${CHART}/files/alerts.yml`]: read('deploy/alerts.yml'),
  [`${CHART}/files/dashboard.json`]: read('deploy/grafana/dashboard.json'),
  [`${CHART}/files/numbers.json`]: `${JSON.stringify(
    CHART_SETTINGS.filter((name) => kinds.has(name)),
    null,
    2,
  )}\n`,
  [`${CHART}/values.schema.json`]: `${JSON.stringify(createSchema(), null, 2)}\n`,
};
const isCheck = process.argv.includes('--check');
writeFiles(files);
const [migration, service] = splitManifests(render());
writeFiles({
  'deploy/kustomize/migration/migration.yaml': toYaml(migration),
  'deploy/kustomize/service/service.yaml': toYaml(service),
});

/**
 * Helm reads the numbers of a values file as floats, so that a number that is no number to Inkpad would be changed. Those
 * of --set are exact, and the schema cannot tell the two apart: inkpad.text in _environment.tpl does.
 */
function createSchema() {
  const max = Number.MAX_SAFE_INTEGER;
  const integer = { type: 'integer', minimum: 0, maximum: max };
  const text = { type: ['string', 'null'] };
  const texts = { type: ['object', 'null'], additionalProperties: { type: 'string' } };
  const extraEnv = {
    type: ['array', 'null'],
    items: { type: 'object', required: ['name'], properties: { name: text, value: text } },
  };
  const replicas = { replicas: integer, extraEnv };
  const bySetting = (name) => {
    const kind = kinds.get(name);
    const types = ['string', 'integer', ...(kind === 'flag' ? ['boolean'] : []), 'null'];
    return kind === undefined ? { type: types } : { type: types, minimum: -max, maximum: max };
  };
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'object',
    properties: {
      settings: {
        type: 'object',
        additionalProperties: false,
        properties: Object.fromEntries(CHART_SETTINGS.map((name) => [name, bySetting(name)])),
      },
      image: { type: 'object', properties: { repository: text, tag: text, digest: text } },
      podAnnotations: texts,
      podLabels: texts,
      nodeSelector: texts,
      api: {
        type: 'object',
        properties: {
          ...replicas,
          drainSeconds: integer,
          service: { type: 'object', properties: { port: integer, annotations: texts } },
        },
      },
      dispatcher: { type: 'object', properties: replicas },
      ingress: { type: 'object', properties: { annotations: texts } },
    },
  };
}

function render() {
  // Helm that was built from source does not know the version of its own libraries.
  const args = ['template', 'inkpad', CHART, '--kube-version=1.34.0'];
  args.push('--set=settings.PUBLIC_URL=https://cards.example');
  return loadAll(execFileSync('helm', args, { cwd: root, encoding: 'utf8' }));
}

/** Separates what Helm runs before an upgrade from the rest. Both lose what only Helm reads. */
function splitManifests(manifests) {
  const isHook = ({ metadata }) => 'helm.sh/hook' in (metadata.annotations ?? {});
  const split = [manifests.filter(isHook), manifests.filter((one) => !isHook(one))];
  for (const { metadata, spec } of manifests) {
    for (const { labels = {}, annotations = {} } of [metadata, spec.template?.metadata ?? {}]) {
      delete labels['helm.sh/chart'];
      delete labels['app.kubernetes.io/managed-by'];
      for (const name of Object.keys(annotations)) {
        if (name.startsWith('helm.sh/')) delete annotations[name];
      }
    }
    if (Object.keys(metadata.annotations ?? {}).length === 0) delete metadata.annotations;
  }
  return split;
}

function toYaml(manifests) {
  return HEADER + manifests.map((one) => dump(one, { noRefs: true, lineWidth: -1 })).join('---\n');
}

function writeFiles(all) {
  for (const [file, content] of Object.entries(all)) {
    const full = path.join(root, file);
    if (fs.existsSync(full) && read(file) === content) continue;
    if (isCheck) {
      console.error(`${file} is out of date: run node deploy/generate.mjs`);
      process.exitCode = 1;
    } else {
      fs.mkdirSync(path.dirname(full), { recursive: true });
      fs.writeFileSync(full, content);
    }
  }
}

function read(file) {
  return fs.readFileSync(path.join(root, file), 'utf8');
}
