import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseSteps } from '../support/guides/guide-parser.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startService, type Client, type Service } from '../support/services/service.js';

/** Tests /mcp with the inspector of the MCP project, and the settings that the guide has for assistants. */

const VERSION = '2.12.0';
const INSTALL_MS = 300_000;
const ADDRESS = 'http://localhost:3000';

let folder: string;
let service: Service;
let store: Client;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'inkpad-assistants-'));
  writeFileSync(join(folder, 'package.json'), '{ "private": true }');
  const npm = ['install', '--ignore-scripts', '--no-audit', '--no-fund'];
  await run('npm', [...npm, `@modelcontextprotocol/inspector@${VERSION}`]);
  service = await startService();
  store = await service.newStore();
}, INSTALL_MS);

afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true });
});

/** @returns what the program wrote. @throws Error with its output unless it exits with 0 */
async function run(program: string, args: string[]): Promise<string> {
  const child = spawn(program, args, {
    cwd: folder,
    env: { ...process.env, HOME: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${program} exited with ${code}:\n${output}${errors}`);
  return output;
}

async function inspect<T>(...args: string[]): Promise<T> {
  const output = await run(join(folder, 'node_modules/.bin/mcp-inspector'), [
    '--cli',
    `${service.baseUrl}/mcp`,
    '--transport',
    'http',
    '--header',
    `Authorization: Bearer ${store.token}`,
    ...args,
  ]);
  return JSON.parse(output) as T;
}

describe('the inspector', () => {
  it('lists the tools', async () => {
    const { tools } = await inspect<{ tools: { name: string }[] }>('--method', 'tools/list');
    expect(tools.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['list_stores', 'add_stamps', 'create_card']),
    );
  });

  it('calls tools that read and write', async () => {
    const { customer, customerCard, path } = await enrol(store);
    const call = (name: string, args: Record<string, string | number>) =>
      inspect<{ structuredContent: { data: unknown } }>(
        '--method',
        'tools/call',
        '--tool-name',
        name,
        ...Object.entries(args).flatMap(([key, value]) => ['--tool-arg', `${key}=${value}`]),
      );
    const { structuredContent } = await call('add_stamps', {
      account_id: store.accountId,
      customer_id: customer.id,
      customer_card_id: customerCard.id,
      stamps: 3,
      idempotency_key: 'receipt-1003',
    });
    expect(structuredContent.data).toMatchObject({ stamps_count: 3 });
    expect((await store.get(path)).body).toMatchObject({ stamps_count: 3 });
    const stores = await call('list_stores', {});
    expect(stores.structuredContent.data).toMatchObject([{ id: store.accountId }]);
  });
});

describe('the guide for assistants', () => {
  it('has settings that are valid JSON with the URL of the endpoint and a token', () => {
    const settings = parseSteps('assistants')
      .flat()
      .filter(({ language }) => language === 'json');
    expect(settings.length).toBe(3);
    for (const { text } of settings) {
      const json = JSON.stringify(JSON.parse(text));
      expect(json).toContain(`"${ADDRESS}/mcp"`);
      expect(json).toMatch(/Authorization/);
      expect(json).toMatch(/Bearer /);
    }
  });

  it('shows the command of the inspector as it works', () => {
    const commands = parseSteps('assistants')
      .flat()
      .map(({ text }) => text);
    expect(commands.at(-1)).toBe(
      `npx @modelcontextprotocol/inspector --cli ${ADDRESS}/mcp --transport http --method tools/list --header "Authorization: Bearer $INKPAD_TOKEN"`,
    );
  });
});
