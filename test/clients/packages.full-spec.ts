import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startService, type Client, type Service } from '../support/services/service.js';

/** Installs the clients from a running service, with the commands that its documentation shows, and stamps a card. */

const SLOW = 300_000;
const PUBLIC_URL = 'https://cards.example';

const TYPESCRIPT = `import { createClient } from '@inkpad/client';
import { verify } from '@inkpad/client/webhooks';
const [baseUrl, token, accountId, customerId, id] = process.argv.slice(2);
const inkpad = createClient({ baseUrl, token, accountId: Number(accountId) });
const path = { customer_id: Number(customerId), id: Number(id) };
const { data, headers } = await inkpad.stampCustomerCard({ path, body: { stamps: 2 } }).withResponse();
console.log(data.stamps_count, headers.has('ratelimit-remaining'), verify({ body: '', headers: {} }, 'whsec_AAAA'));
`;

const PYTHON = `import sys
from inkpad import Inkpad
from inkpad.webhooks import verify
base_url, token, account_id, customer_id, id = sys.argv[1:]
inkpad = Inkpad(base_url=base_url, token=token, account_id=int(account_id))
response = inkpad.with_response(
    inkpad.stamp_customer_card, customer_id=int(customer_id), id=int(id), body={"stamps": 2}
)
print(response.data["stamps_count"], "ratelimit-remaining" in response.headers, verify(b"", {}, "whsec_AAAA"))
`;

let folder: string;
let service: Service;
let store: Client;
/** The commands on the page /docs, by the program that they start. */
let commands: Record<string, string[]>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'inkpad-packages-'));
  service = await startService({ PUBLIC_URL });
  store = await service.newStore();
  const page = await (await fetch(`${service.baseUrl}/docs`)).text();
  commands = Object.fromEntries(
    [...page.matchAll(/<code>((npm|pip) install .*?)<\/code>/g)].map(([, html = '', name = '']) => [
      name,
      html
        .replaceAll(/<[^>]*>/g, '')
        .replace(PUBLIC_URL, service.baseUrl)
        .split(' '),
    ]),
  );
}, SLOW);

afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true });
}, SLOW);

/** Starts a program with the environment of the tests, such as a registry's. @returns what it prints */
async function run([program = '', ...rest]: string[], cwd: string): Promise<string> {
  const { stdout } = await promisify(execFile)(program, rest, { cwd });
  return stdout;
}

async function createArguments(): Promise<string[]> {
  const { customer, customerCard } = await enrol(store);
  return [service.baseUrl, store.token, store.accountId, customer.id, customerCard.id].map(String);
}

describe('the packages that a running service offers', () => {
  it(
    'npm installs the TypeScript client, which stamps a card',
    async () => {
      const project = join(folder, 'npm');
      mkdirSync(project);
      writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
      writeFileSync(join(project, 'stamp.js'), TYPESCRIPT);
      const options = ['--no-audit', '--no-fund', '--cache', join(folder, 'npm-cache')];
      await run([...(commands['npm'] ?? []), ...options], project);
      const output = await run(
        [process.execPath, 'stamp.js', ...(await createArguments())],
        project,
      );
      expect(output).toBe('2 true false\n');
    },
    SLOW,
  );

  it(
    'pip installs the Python client, which stamps a card',
    async () => {
      // Debian's Python where there is one, since most servers run it.
      const [systemPython = 'python3'] = ['/usr/bin/python3'].filter(
        (path) => spawnSync(path, ['-V']).status === 0,
      );
      await run([systemPython, '-m', 'venv', 'venv'], folder);
      const python = join(folder, 'venv/bin/python');
      const install = ['-m', ...(commands['pip'] ?? []), '-q', '--disable-pip-version-check'];
      await run([python, ...install, '--no-cache-dir'], folder);
      writeFileSync(join(folder, 'stamp.py'), PYTHON);
      expect(await run([python, 'stamp.py', ...(await createArguments())], folder)).toBe(
        '2 True False\n',
      );
      const metadata = await run([python, '-m', 'pip', 'show', '-v', 'inkpad-client'], folder);
      expect(metadata).toMatch(/^Requires: standardwebhooks, urllib3$/m);
      expect(metadata).toContain('Typing :: Typed');
      await run([python, '-m', 'pip', 'check'], folder);
    },
    SLOW,
  );
});
