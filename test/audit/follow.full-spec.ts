import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import { createTestEnvironment, testConfig } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { openHistory } from '../support/services/history.js';
import { runNode, startProgram, type Program } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

const CLI = 'dist/apps/cli/cli.js';

type Line = { cursor: string; kind: string; id: string; type: string; account_id: number | null };

let service: LocalService;
let store: Client;
let environment: NodeJS.ProcessEnv;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  environment = createTestEnvironment(service.database.url, service.environment);
});
afterAll(() => service.stop());

function readLines(program: Program): Line[] {
  return program
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as Line);
}

async function waitForLine(program: Program, type: string): Promise<Line> {
  const lines = await eventually(
    () => readLines(program),
    (all) => all.some((line) => line.type === type),
  );
  const line = lines.find((candidate) => candidate.type === type);
  if (!line) throw new Error(`there is no line of type ${type}`);
  return line;
}

const follow = (...args: string[]) => startProgram(CLI, environment, ['audit:follow', ...args]);

async function stop(program: Program): Promise<void> {
  await program.kill('SIGTERM');
  expect(await program.exitCode).toBe(0);
}

const INSERT = `insert into audit_log (type, actor, channel, request_id, subject, recorded_at)
  values ($1, '{"type": "system", "id": 0}', 'system', 'r', '{}', now())`;

const addEntry = (type: string) => service.database.query(INSERT, [type]);

async function inOpenTransaction(type: string): Promise<{ commit: () => Promise<void> }> {
  const client = new pg.Client({ connectionString: service.database.url });
  await client.connect();
  await client.query('begin');
  await client.query(INSERT, [type]);
  return {
    commit: async () => {
      await client.query('commit');
      await client.end();
    },
  };
}

describe('audit:follow', () => {
  it('prints entries of all stores as JSON lines, and goes on with new ones', async () => {
    const program = follow();
    const created = await waitForLine(program, 'token.created');
    expect(created).toEqual({
      cursor: expect.stringMatching(/^audit~\d+~\d+$/),
      kind: 'audit',
      id: expect.stringMatching(/^audit_\d+$/),
      type: 'token.created',
      account_id: store.accountId,
      recorded_at: expect.any(String),
      channel: 'cli',
      actor: { type: 'system', id: 0, name: null },
      request_id: 'test',
      ip_address: null,
      subject: expect.objectContaining({ name: 'till' }),
    });
    await addEntry('first.added');
    await waitForLine(program, 'first.added');
    await stop(program);
  });

  it('continues after a cursor, with each entry once', async () => {
    const first = follow('--until', 'end');
    expect(await first.exitCode).toBe(0);
    const lines = readLines(first);
    for (const [i, { cursor }] of lines.entries()) {
      if (i % 2 === 1) continue;
      const rest = follow('--from', cursor, '--until', 'end');
      expect(await rest.exitCode).toBe(0);
      expect(readLines(rest)).toEqual(lines.slice(i + 1));
    }
  });

  it('skips no entry that is committed after one with a higher number', async () => {
    const slow = await inOpenTransaction('slow.added');
    await addEntry('fast.added');
    const { rows } = await service.database.query<{ id: number }>(
      `select id from audit_log where type = 'fast.added'`,
    );
    const before = follow('--until', 'end');
    expect(await before.exitCode).toBe(0);
    expect(readLines(before).map(({ type }) => type)).not.toContain('fast.added');
    const last = readLines(before).at(-1);
    const program = follow('--from', last?.cursor ?? 'start');
    await slow.commit();
    const slowLine = await waitForLine(program, 'slow.added');
    const fastLine = await waitForLine(program, 'fast.added');
    expect(Number(slowLine.id.slice('audit_'.length))).toBeLessThan(rows[0]?.id ?? 0);
    expect(readLines(program)).toEqual([slowLine, fastLine]);
    await stop(program);
  });

  it('orders transactions by their numbers, however many digits they have', async () => {
    await service.database.query(
      `insert into audit_log (type, actor, channel, request_id, subject, recorded_at, tx)
       select 'tx.' || tx, '{"type": "system", "id": 0}', 'system', 'r', '{}', now(), tx::xid8
       from unnest(array['100', '9', '20']) tx`,
    );
    const program = follow('--until', 'end');
    expect(await program.exitCode).toBe(0);
    const types = readLines(program).map(({ type }) => type);
    expect(types.slice(0, 3)).toEqual(['tx.9', 'tx.20', 'tx.100']);
    const [, second] = readLines(program);
    const rest = follow('--from', second?.cursor ?? '', '--until', 'end');
    expect(await rest.exitCode).toBe(0);
    expect(readLines(rest)).toEqual(readLines(program).slice(2));
  });

  it('goes on when its connections to the database were ended', async () => {
    const program = follow();
    await waitForLine(program, 'fast.added');
    await eventually(
      async () =>
        (
          await service.database.query(
            `select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and application_name like 'inkpad command%'`,
          )
        ).rowCount,
      (count) => (count ?? 0) > 0,
    );
    await addEntry('after.outage');
    await waitForLine(program, 'after.outage');
    await stop(program);
  });

  it('ends with what to do when its last entry is lost, as after a failover', async () => {
    const program = follow();
    await addEntry('lost.added');
    await waitForLine(program, 'lost.added');
    await service.database.query(
      `alter table audit_log disable trigger audit_log_is_final;
       delete from audit_log where type = 'lost.added';
       alter table audit_log enable always trigger audit_log_is_final`,
    );
    expect(await program.exitCode).toBe(1);
    expect(program.output()).toMatch(
      /This database has no entry at audit~\d+~\d+, .* after a failover that has lost the last commits\. Otherwise begin with --from start/,
    );
  });

  it('ends with 0 when nobody reads any more', async () => {
    const child = spawn(process.execPath, [CLI, 'audit:follow'], {
      env: { PATH: process.env['PATH'], ...environment },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(child.stdout, 'data');
    child.stdout.destroy();
    const gone = once(child, 'exit');
    await addEntry('unread.added');
    expect(await gone).toEqual([0, null]);
  });

  it('waits for a reader that is behind, and still stops on SIGTERM', async () => {
    // More than pipes and buffers hold.
    await service.database.query(
      `insert into audit_log (type, actor, channel, request_id, subject, recorded_at)
       select 'large.added', '{"type": "system", "id": 0}', 'system', 'r',
         jsonb_build_object('text', repeat('x', 10000)), now() from generate_series(1, 2000)`,
    );
    const child = spawn(process.execPath, [CLI, 'audit:follow'], {
      env: { PATH: process.env['PATH'], ...environment },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let text = '';
    child.stdout.on('data', (chunk) => {
      text += String(chunk);
      child.stdout.pause();
    });
    await eventually(
      () => text.length,
      (length) => length > 0,
    );
    const ended = Promise.all([once(child, 'exit'), once(child.stdout, 'end')]);
    child.kill('SIGTERM');
    await eventually(
      () => child.exitCode,
      (code) => code !== null,
    );
    expect(child.exitCode).toBe(0);
    child.stdout.removeAllListeners('data');
    child.stdout.on('data', (chunk) => (text += String(chunk)));
    child.stdout.resume();
    await ended;
    expect(text.length).toBeLessThan(10_000_000);
    // Of the last line a part may be missing.
    for (const line of text.split('\n').slice(0, -1)) expect(JSON.parse(line)).toBeDefined();
  });

  it('refuses a cursor whose entry the database does not have, and what is no cursor', () => {
    const run = (...args: string[]) => runNode([CLI, 'audit:follow', ...args], environment);
    const unknown = run('--from', 'audit~3~999999');
    expect([unknown.status, unknown.output]).toEqual([
      1,
      expect.stringContaining('no entry at audit~3~999999, as after restoring a backup'),
    ]);
    expect(run('--kind', 'history', '--from', 'audit~3~999999').output).toContain(
      'add --kind audit',
    );
    expect(run('--from', 'audit_57').status).toBe(2);
    expect(run('--kind', 'access').status).toBe(2);
  });

  it('follows the history, without personal data', async () => {
    const { body: card } = await store.post<CardJson>(`${store.store}/cards`, {
      card: { name: 'Coffee' },
    });
    await store.post(`${store.store}/customers`, {
      customer: { first_name: 'Geraldine', email: 'geraldine@guest.example' },
      card_id: card.id,
    });
    const stopping = new AbortController();
    const history = await openHistory(testConfig(service.database.url, service.environment));
    const filling = history.subscription.run(stopping.signal);
    const program = follow('--kind', 'history');
    const created = await waitForLine(program, 'customer.created');
    expect(created).toMatchObject({
      cursor: expect.stringMatching(/^history~\d+~[0-9a-f-]{36}$/),
      kind: 'history',
      id: expect.stringMatching(/^evt_/),
      account_id: store.accountId,
    });
    expect(program.output()).not.toContain('eraldine');
    await stop(program);
    const numbers = readLines(program).map((line) => (line as Line & { number: number }).number);
    expect(numbers).toEqual(numbers.map((_, i) => i));
    const rest = follow('--kind', 'history', '--from', created.cursor, '--until', 'end');
    expect(await rest.exitCode).toBe(0);
    const [all, ids] = [readLines(program), readLines(rest).map(({ id }) => id)];
    const after = all.slice(all.findIndex(({ cursor }) => cursor === created.cursor) + 1);
    expect(ids.slice(0, after.length)).toEqual(after.map(({ id }) => id));
    stopping.abort();
    await filling;
    await history.close();
  });
});
