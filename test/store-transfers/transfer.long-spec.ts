import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { existsSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'pg';
import { CreateUser } from '#identity/identity.commands.js';
import { CreateToken } from '#identity/token.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { EventStore, type StoredEvent } from '#platform/event-store/port/event-store.js';
import { verifyExport } from '../../clients/verifier/verifier.mjs';
import { checkpointKey, startSigning } from '../support/fixtures/checkpoints.js';
import { createTestEnvironment } from '../support/database/database.js';
import { plainPng } from '../support/fixtures/pictures.js';
import { startCommand, startProgram, type Program } from '../support/services/program.js';
import { Client, cli, startService, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/** A store moves from one instance to another: exported with proofs, verified offline, imported. */

const SLOW = 300_000;
const folder = mkdtempSync(join(tmpdir(), 'inkpad-export-'));
const key = checkpointKey();

let from: LocalService;
let to: LocalService;
let store: Client;
let dispatcher: Program;
let card: Awaited<ReturnType<typeof enrol>>;
/** Exports with the customers' keys, and without. */
const whole = join(folder, 'whole.ndjson');
const sealed = join(folder, 'sealed.ndjson');

beforeAll(async () => {
  from = await startService();
  to = await startService();
  // Makes the store's ids differ from those in the other instance.
  await from.newStore();
  store = await from.newStore();
  ({ dispatcher } = await startSigning(from, key));
  card = await enrol(store, { rewards: [3], email: 'anna@example.com' });
  for (let i = 0; i < 5; i++) {
    await store.post(`${card.path}/stamp`, { stamps: 2, external_ref: `R-${i}`, note: 'for Anna' });
  }
  await store.post(`${card.path}/redeem`, { reward_id: card.rewards[0]?.id });
  await enrol(store);
  await store.send('PUT', `${store.store}/cards/${card.card.id}/strip_image`, plainPng(40, 20), {
    'content-type': 'image/png',
  });
}, SLOW);
afterAll(async () => {
  await dispatcher.kill('SIGTERM');
  await Promise.all([from.stop(), to.stop()]);
}, SLOW);

async function run(service: LocalService, ...args: string[]) {
  const environment = createTestEnvironment(service.database.url, service.environment);
  const program = startProgram('dist/apps/cli/cli.js', environment, args);
  return { code: await program.exitCode, output: program.output() };
}

const runImport = (file: string, verifier = key.verifier) =>
  run(to, 'history:import', '--in', file, '--key', verifier);

const filterStore = (events: StoredEvent[]) =>
  events.filter(({ meta }) => meta.accountId === store.accountId);
const content = (events: StoredEvent[]) =>
  events.map((event) => ({ ...event, position: undefined }));

const splitLines = (file: string) => readFileSync(file, 'utf8').trimEnd().split('\n');

async function* readLines(lines: string[]) {
  yield* lines;
}

it(
  'an export has every event of the store, each proven by the verifier',
  async () => {
    const account = String(store.accountId);
    const result = await run(
      from,
      'history:export',
      '--account',
      account,
      '--out',
      whole,
      '--personal',
    );
    expect(result.code).toBe(0);
    const events = filterStore(await from.history());
    expect(JSON.parse(result.output)).toMatchObject({ events: events.length, personal: true });
    expect(statSync(whole).mode & 0o777).toBe(0o600);
    const proof = await verifyExport(readLines(splitLines(whole)), key.verifier);
    expect(proof).toMatchObject({ accountId: store.accountId, events: events.length, keys: 2 });
    const again = await run(from, 'history:export', '--account', account, '--out', whole);
    expect(again.output).toContain('exists already');
  },
  SLOW,
);

it(
  'an export that runs out of disk space leaves no file',
  async () => {
    const file = join(folder, 'cut.ndjson');
    const program = startCommand(
      [
        'prlimit',
        `--fsize=${statSync(whole).size - 4}`,
        process.execPath,
        'dist/apps/cli/cli.js',
        'history:export',
        '--account',
        String(store.accountId),
        '--personal',
        '--out',
        file,
      ],
      createTestEnvironment(from.database.url, from.environment),
    );
    expect([await program.exitCode, program.output()]).toEqual([
      1,
      expect.stringContaining('EFBIG'),
    ]);
    expect(existsSync(file)).toBe(false);
  },
  SLOW,
);

it(
  'an export without --personal keeps personal data sealed, can be verified, and is refused by an import',
  async () => {
    const account = String(store.accountId);
    await run(from, 'history:export', '--account', account, '--out', sealed);
    expect((await verifyExport(readLines(splitLines(sealed)), key.verifier)).keys).toBe(0);
    expect(readFileSync(sealed, 'utf8')).not.toMatch(/Anna|anna@example/);
    const importRun = await runImport(sealed);
    expect(importRun.code).toBe(1);
    expect(importRun.output).toContain('it was exported without --personal');
  },
  SLOW,
);

describe('an import writes nothing', () => {
  const writeChanged = (name: string, change: (lines: string[]) => string[]) => {
    const file = join(folder, `${name}.ndjson`);
    writeFileSync(file, `${change(splitLines(whole)).join('\n')}\n`);
    return file;
  };

  it.each([
    [
      'of a file with a changed event',
      (l: string[]) => l.map((t) => t.replace('"stamps":2', '"stamps":9')),
      'was changed',
    ],
    [
      'of a file without one of its events',
      (l: string[]) => l.toSpliced(3, 1),
      'does not follow|events are in the file',
    ],
    ['of a truncated file', (l: string[]) => l.slice(0, -3), 'ends too early'],
    [
      'of a file with another picture',
      (l: string[]) => l.map((t) => t.replace(/("png":"\w{100})./, '$1-')),
      'the picture \\w{64} was changed',
    ],
    [
      'of a file without one of its pictures',
      (l: string[]) => l.filter((t) => !t.startsWith('{"picture"')),
      'the picture \\w{64} is missing',
    ],
    [
      'of a file without the key of a customer',
      (l: string[]) =>
        l.toSpliced(
          l.findIndex((t) => t.startsWith('{"personal_key"')),
          1,
        ),
      'the key of customer \\d+ is missing',
    ],
    [
      'of a file with a wrong key of a customer',
      (l: string[]) => l.map((t) => t.replace(/("key":")..../, '$1AAAA')),
      'the key of customer \\d+ does not open their data',
    ],
    ['of a file in another format', () => ['{"format":"other"}'], 'the format is not'],
  ])(
    '%s',
    async (name, change, sentence) => {
      const { code, output } = await runImport(writeChanged(name, change));
      expect(output).toMatch(new RegExp(sentence));
      expect(output).toContain('Nothing was imported');
      expect(code).toBe(1);
      expect(filterStore(await to.history())).toEqual([]);
    },
    SLOW,
  );

  it(
    'of a file whose checkpoint another key has signed',
    async () => {
      const { output } = await runImport(whole, checkpointKey('x').verifier);
      expect(output).toContain('the checkpoint was not signed by x');
    },
    SLOW,
  );
});

it(
  'an imported store has the same ids, events and pictures, and works in the other instance',
  async () => {
    const result = await runImport(whole);
    expect(result).toMatchObject({ code: 0 });
    const events = content(filterStore(await from.history()));
    expect(content(filterStore(await to.history()))).toEqual(events);

    await to.execute(new CreateUser(cli, 'new@owner.example', 'Owner', 'correct horse'));
    await to.execute(new AddMember(cli, store.accountId, 'new@owner.example', 'owner'));
    const { token } = await to.execute(new CreateToken(cli, 'new@owner.example', 'till'));
    const importedStore = new Client(to.baseUrl, store.accountId, token);
    for (const path of [
      card.path,
      `${store.store}/customers/${card.customer.id}`,
      `${store.store}/cards`,
    ]) {
      const [there, here] = [await importedStore.get(path), await store.get(path)];
      expect([there.status, there.body]).toEqual([200, here.body]);
    }
    const pictures = await Promise.all(
      [to, from].map(
        async ({ app }) =>
          (await app.get(Pool).query('select hash, account_id, png from pictures')).rows,
      ),
    );
    expect(pictures[0]).toHaveLength(1);
    expect(pictures[0]).toEqual(pictures[1]);
    // Receipt numbers count once, and new records get unused ids.
    const before = await importedStore.get<{ stamps_count: number }>(card.path);
    await importedStore.post(`${card.path}/stamp`, { stamps: 2, external_ref: 'R-1' });
    expect((await importedStore.get(card.path)).body).toEqual(before.body);
    expect((await importedStore.stamp(card.path)).status).toBe(200);
    const next = await enrol(importedStore);
    expect(next.customer.id).toBeGreaterThan(card.customer.id);
    const verification = startProgram(
      'dist/apps/cli/verify.js',
      createTestEnvironment(to.database.url, to.environment),
    );
    expect([await verification.exitCode, verification.output()]).toEqual([
      0,
      expect.stringContaining('every read model matches its events'),
    ]);
  },
  SLOW,
);

it(
  'an import is refused when the store has newer events than the file',
  async () => {
    const { code, output } = await runImport(whole);
    expect(output).toContain('is already used by another record here, or has newer events');
    expect(code).toBe(1);
  },
  SLOW,
);

it(
  'an import that was killed is completed by the next',
  async () => {
    const otherService = await startService();
    try {
      const lines = splitLines(whole);
      // Simulates a kill: there are some events, and no read models.
      const events = filterStore(await from.history()).slice(0, 4);
      const target = otherService.app.get(EventStore);
      const heads = new Map<string, { revision: number; hash: string }>();
      for (const { stream, id, type, version, data, meta } of events) {
        const expected = heads.get(stream) ?? null;
        const writes = [{ stream, expected, events: [{ id, type, version, data, meta }] }];
        const [head] = await target.commit({ accountId: meta.accountId, writes });
        if (head) heads.set(stream, head);
      }
      for (let run = 0; run < 2; run++) {
        const environment = createTestEnvironment(
          otherService.database.url,
          otherService.environment,
        );
        const args = ['history:import', '--in', whole, '--key', key.verifier];
        const program = startProgram('dist/apps/cli/cli.js', environment, args);
        expect([await program.exitCode, program.output()]).toEqual([0, expect.any(String)]);
        expect(content(filterStore(await otherService.history())).map(({ hash }) => hash)).toEqual(
          lines.flatMap((line) => {
            const { event } = JSON.parse(line) as { event?: { hash: string } };
            return event ? [event.hash] : [];
          }),
        );
      }
    } finally {
      await otherService.stop();
    }
  },
  SLOW,
);
