import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { type Program } from '../support/services/program.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

/** Builds the nodes for n8n as their README says, and runs them against a service with a real dispatcher. */

const SLOW = 300_000;

/** Each line of its output is the result of a step. */
const WORKFLOW = `import { executeNode, loadOptions, TriggerWorkflow } from './test/node-host.mjs';
const { baseUrl, token, accountId, code, rewardId, cardId } = JSON.parse(process.argv[2]);
const credentials = { baseUrl, token };
let runIndex = 0;
const print = (value) => console.log(JSON.stringify(value));
const execute = async (resource, operation, parameters = {}) =>
  executeNode(credentials, { resource, operation, accountId, cardBy: 'code', code, ...parameters }, { runIndex: runIndex++ });
const waitFor = async (isTrue) => {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 50));
};

const trigger = new TriggerWorkflow(credentials, { accountId, events: ['stamp.earned', 'reward.redeemed'] });
print(await trigger.activate());
print(await trigger.activate());
const stamp = { stamps: 5, externalRef: 'order-1', options: { staffRef: 'Ben' } };
print((await execute('customerCard', 'stamp', stamp)).map((card) => card.stamps_count));
print((await execute('customerCard', 'stamp', stamp)).map((card) => card.stamps_count));
print((await execute('customerCard', 'redeem', { rewardId })).map(({ redemption }) => redemption.stamps_spent));
await waitFor(() => trigger.outputs.length === 2);
print(trigger.outputs.map(({ type }) => type).sort());
print((await fetch(trigger.url, { method: 'POST', body: '{}' })).status);
const [subscription] = await loadOptions(credentials, 'getWebhookSubscriptions', { accountId });
print(subscription.name);
const replay = { subscriptionId: subscription.value, from: '2020-01-01T00:00:00' };
print(await execute('webhook', 'replay', replay));
print((await execute('customerCard', 'adjust', { stamps: 5, reason: 'Forgotten' })).map((card) => card.stamps_count));
await waitFor(() => trigger.outputs.length === 3);
print(trigger.outputs.length);
print((await execute('receipt', 'reverse', { externalRef: 'order-1', reason: 'Returned' })).length);
await trigger.deactivate();
print(await loadOptions(credentials, 'getWebhookSubscriptions', { accountId }));
trigger.close();

const person = { firstName: 'Ben', additionalFields: { email: 'ben@example.com', cardId } };
print((await execute('customer', 'createOrFind', person)).map(({ created }) => created));
print((await execute('customer', 'createOrFind', { ...person, firstName: 'B.' })).map(({ created }) => created));
for (let i = 0; i < 3; i++) await execute('card', 'create', { name: 'Card ' + i, additionalFields: { stampsRequired: 8 } });
print((await execute('card', 'getAll', { returnAll: false, limit: 2 })).length);
print((await execute('card', 'getAll', { returnAll: true })).length);
print((await execute('customer', 'getAll', { returnAll: true, filters: { email: 'BEN@example.com' } })).length);
print((await loadOptions(credentials, 'getAccounts')).length);
const rejection = await execute('customerCard', 'stamp', { stamps: 0 }).catch((error) => error);
print([rejection.name, rejection.httpCode, rejection.message, rejection.description.includes('Read more: ')]);
`;

let folder: string;
let service: Service;
let dispatcher: Program;
let store: Client;

function run(command: string[]): void {
  const [program = '', ...rest] = command;
  // In NODE_ENV test, n8n's rules check nothing but their own examples.
  const env = { ...process.env, NODE_ENV: '' };
  const options = { cwd: folder, encoding: 'utf8', env } as const;
  const { status, stdout, stderr } = spawnSync(program, rest, options);
  if (status !== 0) {
    throw new Error(`${command.join(' ')} ended with ${status}:\n${stdout}${stderr}`);
  }
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'inkpad-n8n-'));
  cpSync('clients/n8n', folder, {
    recursive: true,
    filter: (path) => !['node_modules', 'dist', 'package-lock.json'].includes(basename(path)),
  });
  run(['npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts']);
  run(['npm', 'run', 'build']);
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
  dispatcher = await startDispatcher(service);
  store = await service.newStore();
}, SLOW);

afterAll(async () => {
  await dispatcher.kill('SIGTERM');
  await service.stop();
  rmSync(folder, { recursive: true });
}, SLOW);

describe('the nodes for n8n', () => {
  it(
    'build, pass their tests and keep the rules of n8n',
    () => {
      expect(() => run(['npm', 'test'])).not.toThrow();
      expect(() => run(['npm', 'run', 'lint'])).not.toThrow();
    },
    SLOW,
  );

  it(
    'stamp, redeem and reverse, and start a workflow for each event once',
    async () => {
      const { card, rewards, customerCard } = await enrol(store, { rewards: [5] });
      writeFileSync(join(folder, 'workflow.mjs'), WORKFLOW);
      const settings = {
        baseUrl: service.baseUrl,
        token: store.token,
        accountId: store.accountId,
        code: customerCard.code,
        rewardId: rewards[0]?.id,
        cardId: card.id,
      };
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ['workflow.mjs', JSON.stringify(settings)],
        { cwd: folder },
      );
      const results = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown);
      expect(results).toEqual([
        false,
        true,
        [5],
        [5],
        [5],
        ['reward.redeemed', 'stamp.earned'],
        401,
        'n8n: Till',
        [{ matched: 2 }],
        [5],
        3,
        1,
        [],
        [true],
        [false],
        2,
        4,
        1,
        1,
        ['NodeApiError', '422', expect.any(String), true],
      ]);
    },
    SLOW,
  );
});
