import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { addImports, listSuites } from './test-imports.mjs';

const program = (name, debianPackage) => ({
  debianPackage,
  isThere: () => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0,
});

/**
 * The parts of `npm run test:full` that need more than Node.js and npm.
 * @property needs programs or files, with the Debian package of each; null: there is none
 * @property suites matches the files of its tests, or what these import
 */
export const PARTS = {
  browser: {
    needs: [program('chromium', 'chromium'), program('pdftoppm', 'poppler-utils')],
    suites: /^test\/support\/browser\/chromium\.ts$/,
  },
  certificates: {
    needs: [program('openssl', 'openssl')],
    suites:
      /^test\/support\/fixtures\/certificates\.ts$|emulators\/apple\/(certificates|pass-reader)/,
  },
  redis: {
    needs: [program('redis-server', 'redis-server')],
    suites: /^test\/support\/database\/redis\.ts$|^test\/deployment\/compose-redis/,
  },
  pgbouncer: {
    needs: [program('pgbouncer', 'pgbouncer')],
    suites: /^test\/support\/database\/pgbouncer\.ts$/,
  },
  mailbox: {
    needs: [program('dovecot', 'dovecot-imapd')],
    suites: /^test\/support\/emulators\/dovecot\.ts$/,
  },
  languages: {
    needs: [
      {
        debianPackage: 'python3-venv',
        isThere: () => spawnSync('python3', ['-c', 'import ensurepip']).status === 0,
      },
      program('php', 'php-cli'),
      {
        debianPackage: 'php-guzzlehttp-guzzle php-curl',
        isThere: () => fs.existsSync('/usr/share/php/GuzzleHttp/autoload.php'),
      },
      program('ruby', 'ruby'),
      program('go', 'golang-go'),
      program('java', 'default-jdk-headless'),
      program('mvn', 'maven'),
      program('perl', 'perl'),
    ],
    suites:
      /^test\/support\/guides\/|^test\/clients\/(packages|python|generated)|^test\/api\/schemathesis|^test\/webhooks\/samples/,
  },
  compose: {
    needs: [program('docker-compose', 'docker-compose'), program('caddy', 'caddy')],
    suites: /^test\/deployment\/compose/,
  },
  chart: { needs: [program('helm', null)], suites: /^test\/deployment\/kubernetes/ },
  alerts: { needs: [program('promtool', 'prometheus')], suites: /^test\/monitoring\/alerts/ },
};

/** Reads SKIP_PARTS, names with spaces between them. @throws Error for a name that is no part */
export function readSkippedParts({ SKIP_PARTS = '' } = process.env) {
  const names = SKIP_PARTS.split(' ').filter(Boolean);
  for (const name of names) {
    if (!Object.hasOwn(PARTS, name)) {
      throw new Error(`SKIP_PARTS: "${name}" is none of ${Object.keys(PARTS).join(', ')}`);
    }
  }
  return names;
}

/** Lists the files of the tests that need a part. None of `npm test` does. */
export function listSuitesOf(name) {
  const { suites } = PARTS[name];
  return listSuites()
    .filter((file) => !file.endsWith('.e2e-spec.ts'))
    .filter((file) => [...addImports(file)].some((other) => suites.test(other)));
}

/** `node tools/test/parts.mjs` fails where something is missing; `… packages` prints the Debian packages that are. */
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const skipped = new Set(readSkippedParts());
  const missing = Object.entries(PARTS)
    .filter(([name]) => !skipped.has(name))
    .map(([name, { needs }]) => ({ name, needs: needs.filter(({ isThere }) => !isThere()) }))
    .filter(({ needs }) => needs.length > 0);
  const listPackages = (needs) =>
    needs.flatMap(({ debianPackage }) => debianPackage ?? []).join(' ');
  if (process.argv[2] === 'packages') {
    console.log(missing.map(({ needs }) => listPackages(needs)).join(' '));
  } else if (missing.length > 0) {
    for (const { name, needs } of missing) {
      const packages = listPackages(needs);
      const install = packages ? `run apt-get install ${packages}` : 'see CONTRIBUTING.md';
      console.error(`The part ${name} cannot run here: ${install}, or set SKIP_PARTS=${name}.`);
    }
    process.exitCode = 1;
  }
}
