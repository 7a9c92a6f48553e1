import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { StartFailure } from '../apps/cli/start-failure.mjs';

const benches = {
  scale:
    'stamps and deliveries a second, and what each takes of the processors, with several processes',
  sizing: 'what a load takes, calculated from measured figures; measures nothing',
  footprint:
    'memory of api and dispatcher, idle and busy, and how long they take to start on a history',
  stamps:
    'stamps per second and their latency, compared with CRUD services written for the purpose',
  batch: 'what a batch of 100 stamps costs, compared with single requests',
  reads: 'cards, customers and rewards read per second, and what a read takes of the processors',
  customers: 'how long listing and searching take in a store with 200,000 customers',
  exports:
    'how long all records of a store with 100,000 customers take to export, and how much memory',
  statistics: 'how long the statistics of a store with a million events take to read and to count',
  deliveries: 'signed webhook deliveries per second, compared with BullMQ and Graphile Worker',
  fairness: 'what a slow endpoint or a flooding store costs the deliveries of others',
  neighbours:
    'what each operation of one store at its limits costs the stamps and lists of another',
  'long-card': 'what a stamp costs on a card with 5,000 stamps, compared with a new one',
  'as-of': 'how long a card with 10,000 stamps takes to be shown as it was',
  rebuild: 'how fast the read models are rebuilt from a history',
  engines: 'how fast a history is verified, rebuilt, backed up and moved with either engine',
  disk: 'how much room stamps, customers, deliveries and passes take in the database',
  proof: 'what the table of the history and the transparency log cost for each event',
  imports: 'how long a file of 50,000 customers takes, and the same file again',
  uploads: 'what many large files at once cost the api in memory and other requests in time',
  messages:
    'how long an announcement takes to 10,000 customers, and what it costs the stamps of tills',
  images: 'images of cards per second, drawn and kept',
  passes:
    'signed passes for Apple Wallet per second and core, compared with passkit-generator and pkijs',
  verify: 'how fast a history is verified, and whether a longer one takes more memory',
};

const root = fileURLToPath(new URL('..', import.meta.url));
const [name, ...args] = process.argv.slice(2);

if (!Object.hasOwn(benches, name ?? '')) {
  if (name !== undefined) console.error(`There is no bench "${name}".`);
  console.error('npm run bench -- <name> [options], where <name> is one of');
  for (const [benchName, what] of Object.entries(benches)) {
    console.error(`  ${benchName.padEnd(10)} ${what}`);
  }
  console.error('bench/README.md lists the options.');
  process.exit(2);
}

if (!existsSync(`${root}bench/node_modules/.package-lock.json`)) {
  npm('installing the packages to compare with', ['ci', '--prefix', 'bench']);
}
if (!existsSync(`${root}dist/apps/api/main.js`)) npm('building', ['run', 'build']);

// Imported only now, because it needs what was just installed.
const { run } = await import(`./${name}.mjs`);
try {
  process.exitCode = await run(args);
} catch (error) {
  if (!(error instanceof StartFailure) && !String(error.code).startsWith('ERR_PARSE_ARGS'))
    throw error;
  console.error(error.message);
  process.exitCode = 2;
}

function npm(what, args) {
  console.error(`${what} (npm ${args.join(' ')}) …`);
  const { status, error } = spawnSync('npm', args, { cwd: root, stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}
