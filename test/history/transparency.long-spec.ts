import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isKeyName } from '#platform/kernel/signed-note.js';
import {
  NotProven,
  verifyConsistency,
  verifyContinuation,
} from '../../clients/verifier/verifier.mjs';
import { signCheckpoint } from '#outbound/transparency/checkpoint.js';
import { CheckpointFiles } from '#outbound/transparency/checkpoint-folder.service.js';
import { Tree } from '#outbound/transparency/tree.service.js';
import { checkpointKey, computeRoot, startSigning } from '../support/fixtures/checkpoints.js';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { findFreePort, startProgram, type Program } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/** The tree over all events, and the checkpoints that a dispatcher signs. */

const SLOW = 300_000;

let service: LocalService;
let store: Client;
let card: { path: string };
let key: ReturnType<typeof checkpointKey>;
const programs = new Set<Program>();

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  card = await enrol(store);
}, SLOW);
beforeEach(() => {
  key = checkpointKey();
});
afterEach(async () => {
  await Promise.all([...programs].map((program) => program.kill('SIGTERM')));
  programs.clear();
}, SLOW);
afterAll(() => service.stop(), SLOW);

const stamp = () => store.stamp(card.path);

async function start(settings: NodeJS.ProcessEnv = {}) {
  const signing = await startSigning(service, key, settings);
  programs.add(signing.dispatcher);
  return signing;
}

it(
  'a checkpoint covers every event in the order of the log',
  async () => {
    const { waitForCheckpoint } = await start();
    for (let i = 0; i < 3; i++) await stamp();
    const { size, root } = await waitForCheckpoint();
    const events = await service.history();
    expect(size).toBe(events.length);
    expect(root.toString('base64')).toBe(computeRoot(events));
    const latest = readFileSync(join(key.dir, 'latest'), 'utf8');
    expect(readFileSync(join(key.dir, key.files().at(-1) ?? ''), 'utf8')).toBe(latest);
    const response = await store.get(`/checkpoint`);
    expect([response.status, response.text]).toEqual([200, latest]);
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
  },
  SLOW,
);

it(
  'the tree and its checkpoints stay consistent when dispatchers are killed while events arrive',
  async () => {
    let isStamping = true;
    const stamps = (async () => {
      while (isStamping) expect((await stamp()).status).toBe(200);
    })();
    const sizes: number[] = [];
    for (let kill = 0; kill < 3; kill++) {
      const [{ dispatcher, waitForCheckpoint }, otherSigning] = [await start(), await start()];
      const { size } = await waitForCheckpoint();
      sizes.push(size);
      for (const program of [dispatcher, otherSigning.dispatcher]) {
        programs.delete(program);
        await program.kill('SIGKILL');
      }
    }
    isStamping = false;
    await stamps;
    const { waitForCheckpoint } = await start();
    const { size, root } = await waitForCheckpoint();
    const events = await service.history();
    expect([size, root.toString('base64')]).toEqual([events.length, computeRoot(events)]);
    // Each checkpoint continues the one before it.
    const tree = service.app.get(Tree, { strict: false });
    const notes = key.files().map((name) => key.opened(readFileSync(join(key.dir, name), 'utf8')));
    expect(notes.length).toBeGreaterThan(2);
    for (const [i, later] of notes.entries()) {
      const before = notes[i - 1];
      if (!before) continue;
      verifyConsistency(before, later, await tree.getConsistencyProof(before.size, later.size));
    }
    expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
  },
  SLOW,
);

it(
  'a lost tree is built again from the log, with the same root',
  async () => {
    const first = await start();
    await first.waitForCheckpoint();
    programs.delete(first.dispatcher);
    await first.dispatcher.kill('SIGTERM');
    await service.database.query(
      `truncate transparency_tiles;
       update transparency_log set size = 0, checkpoint_size = 0, checkpoint = null;
       delete from es.positions where subscription = 'transparency log'`,
    );
    const { waitForCheckpoint } = await start();
    await stamp();
    const { size, root } = await waitForCheckpoint();
    const events = await service.history();
    expect([size, root.toString('base64')]).toEqual([events.length, computeRoot(events)]);
  },
  SLOW,
);

describe('inkpad checkpoint:consistency', () => {
  async function consistency(from: string, settings: NodeJS.ProcessEnv = key.settings) {
    const environment = createTestEnvironment(service.database.url, {
      ...service.environment,
      ...settings,
    });
    const args = ['checkpoint:consistency', '--from', from];
    const program = startProgram('dist/apps/cli/cli.js', environment, args);
    return { code: await program.exitCode, output: program.output() };
  }

  it(
    'proves that the newest checkpoint continues an older one',
    async () => {
      const { waitForCheckpoint } = await start();
      const checkpoint = await waitForCheckpoint();
      const [file = ''] = key.files();
      const path = join(key.dir, file);
      const note = readFileSync(path, 'utf8');
      const same = await consistency(path);
      expect(same.code).toBe(0);
      expect(JSON.parse(same.output)).toMatchObject({ first: note, consistency_proof: [] });
      for (let i = 0; i < 3; i++) await stamp();
      const newest = await waitForCheckpoint();
      const { code, output } = await consistency(path);
      expect(code).toBe(0);
      const proof = JSON.parse(output) as { first: string; consistency_proof: string[] };
      expect(proof.first).toBe(note);
      const { first, second } = verifyContinuation(proof, key.verifier);
      expect([first, second.size]).toEqual([expect.objectContaining(checkpoint), newest.size]);

      const [hash = '', ...others] = proof.consistency_proof;
      const bytes = Buffer.from(hash, 'base64');
      bytes.writeUInt8(bytes.readUInt8(0) ^ 1, 0);
      const tamperedProof = { ...proof, consistency_proof: [bytes.toString('base64'), ...others] };
      expect(() => verifyContinuation(tamperedProof, key.verifier)).toThrow(NotProven);
      // With another key the checkpoint belongs to another history.
      const otherKey = checkpointKey();
      expect(() => verifyContinuation(proof, otherKey.verifier)).toThrow(NotProven);
    },
    SLOW,
  );

  it(
    'reports a missing file, a file without a checkpoint of this history, and a key that has signed none',
    async () => {
      await (await start()).waitForCheckpoint();
      const wrong = join(key.dir, 'wrong');
      writeFileSync(wrong, 'no checkpoint\n');
      const longer = join(key.dir, 'longer');
      writeFileSync(
        longer,
        signCheckpoint({ size: 1_000_000, root: Buffer.alloc(32) }, key.signer),
      );
      const failsWith = (sentence: string) => ({
        code: 1,
        output: expect.stringContaining(sentence),
      });
      expect(await consistency('/no/such/file')).toEqual(failsWith('cannot be read (ENOENT)'));
      for (const file of [wrong, longer]) {
        expect(await consistency(file)).toEqual(
          failsWith(`${file} holds no checkpoint of shop.example/inkpad for 1 to `),
        );
      }
      const { CHECKPOINT_KEY } = checkpointKey('other.example').settings;
      expect(await consistency(longer, { CHECKPOINT_KEY })).toEqual(
        failsWith('No checkpoint has been signed with CHECKPOINT_KEY yet'),
      );
    },
    SLOW,
  );
});

describe('the dispatcher signs no checkpoint', () => {
  /** Waits until a dispatcher refuses to sign. @returns its output */
  async function waitForContradiction(sentence: string): Promise<string> {
    const before = key.files();
    const port = await findFreePort();
    const { dispatcher, requestCheckpoint } = await start({ HEALTH_PORT: String(port) });
    await eventually(dispatcher.output, (text) => text.includes(sentence));
    await stamp();
    await requestCheckpoint();
    const health = await eventually(
      async () => (await fetch(`http://127.0.0.1:${port}/health/ready`)).text(),
      (text) => text.includes('"checkpoints":"unavailable"'),
    );
    expect(JSON.parse(health)).toMatchObject({ status: 'ok' });
    expect(key.files()).toEqual(before);
    return dispatcher.output();
  }

  async function stopAll(): Promise<void> {
    await Promise.all([...programs].map((program) => program.kill('SIGTERM')));
    programs.clear();
  }

  it(
    'while the tree contradicts a checkpoint in the folder',
    async () => {
      await (await start()).waitForCheckpoint();
      await stopAll();
      const flip = () =>
        service.database.query(
          `update transparency_tiles set hashes = set_byte(hashes, 0, get_byte(hashes, 0) # 1)
           where index = 0 and level = (select max(level) from transparency_tiles)`,
        );
      await flip();
      expect(await waitForContradiction('the history was changed')).toContain(
        'no checkpoint was signed',
      );
      await stopAll();
      await flip();
      await (await start()).waitForCheckpoint();
    },
    SLOW,
  );

  it(
    'when the history is shorter than a checkpoint in the folder, as after restoring a backup',
    async () => {
      const note = signCheckpoint({ size: 1_000_000, root: Buffer.alloc(32) }, key.signer);
      await new CheckpointFiles(key.dir).write(1_000_000, note);
      expect(
        await waitForContradiction('covers 1000000 events, and the history has only'),
      ).toContain('events are missing, or a backup was restored');
    },
    SLOW,
  );

  it(
    'when another key has signed a checkpoint in the folder',
    async () => {
      await (await start()).waitForCheckpoint();
      await stopAll();
      const otherKey = checkpointKey('other.example');
      const port = await findFreePort();
      const { dispatcher } = await start({
        CHECKPOINT_KEY: otherKey.settings.CHECKPOINT_KEY,
        HEALTH_PORT: String(port),
      });
      await eventually(dispatcher.output, (text) =>
        text.includes('is not a checkpoint that the key other.example has signed'),
      );
    },
    SLOW,
  );
});

it(
  'the address in CHECKPOINT_MAIL_TO gets a checkpoint by mail once a day',
  async () => {
    const mails = await MailServer.start();
    try {
      const { requestCheckpoint, waitForCheckpoint } = await start({
        SMTP_URL: mails.url,
        MAIL_FROM: 'inkpad@shop.example',
        CHECKPOINT_MAIL_TO: 'audit@other.example',
      });
      await waitForCheckpoint();
      const [mail] = await eventually(
        () => mails.received,
        ({ length }) => length > 0,
      );
      expect(mail?.to).toBe('audit@other.example');
      const text = mail?.text.replaceAll('\r\n', '\n') ?? '';
      const note = text.split(/^-+\n/m)[1] ?? '';
      expect(key.opened(note).size).toBeGreaterThan(0);
      await stamp();
      await waitForCheckpoint();
      await service.database.query(
        `update transparency_log set mailed_at = now() - interval '1 day'`,
      );
      await requestCheckpoint();
      await eventually(
        () => mails.received.length,
        (count) => count === 2,
      );
    } finally {
      await mails.goAway();
    }
  },
  SLOW,
);

describe('the checkpoint key', () => {
  it(
    'is created once in DATA_DIR, named after PUBLIC_URL',
    async () => {
      const dataDir = checkpointKey().dir;
      const settings = {
        CHECKPOINT_KEY: '',
        DATA_DIR: dataDir,
        PUBLIC_URL: 'https://cards.example/a+b/',
      };
      const readKey = () => readFileSync(join(dataDir, 'checkpoint.key'), 'utf8');
      const { requestCheckpoint } = await start(settings);
      const first = readKey();
      expect(first).toMatch(/^PRIVATE\+KEY\+cards\.example\/a-b\+/);
      await eventually(
        async () => {
          await requestCheckpoint();
          return (await store.get('/checkpoint')).text;
        },
        (note) => note.startsWith('cards.example/a-b\n'),
      );
      await start(settings);
      expect(readKey()).toBe(first);
      expect(isKeyName('cards.example/a-b')).toBe(true);
    },
    SLOW,
  );

  it(
    'is not created in production, where the log says that nothing is signed without one',
    async () => {
      const program = startProgram(
        'dist/apps/dispatcher/main.js',
        createTestEnvironment(service.database.url, {
          ...service.environment,
          NODE_ENV: 'production',
          LOG_LEVEL: 'info',
          LOG_FORMAT: 'text',
        }),
      );
      programs.add(program);
      await eventually(program.output, (text) =>
        text.includes('CHECKPOINT_KEY is not set: no checkpoints of the history are signed'),
      );
    },
    SLOW,
  );
});
