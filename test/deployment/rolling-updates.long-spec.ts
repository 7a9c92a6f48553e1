import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import {
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, startProgram, type Program } from '../support/services/program.js';

const SLOW = 300_000;
const DELAY_SECONDS = 5;
/** How long the balancer goes on sending requests to a process that is not ready any more. */
const LAG_MS = 1_000;

type Member = { port: number; program: Program; readyAt: number };

let database: TestDatabase;
const programs: Program[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
}, SLOW);

afterAll(async () => {
  await Promise.all(programs.map((program) => program.kill('SIGTERM')));
  await database.close();
});

describe('an update of two api processes, one after the other', () => {
  it(
    'refuses no request of a load balancer that notices a stopping process a second late',
    async () => {
      let members = [await startMember(), await startMember()];
      const balancing = new AbortController();
      const results: string[] = [];
      const balancer = balance(() => members, results, balancing.signal);
      for (const old of members) {
        members.push(await startMember());
        await eventually(
          () => members.at(-1)?.readyAt,
          (readyAt) => (readyAt ?? 0) > 0,
        );
        const stoppedAt = performance.now();
        const gone = old.program.kill('SIGTERM');
        await eventually(
          () => send(old.port, '/health/ready'),
          (result) => result === '503',
        );
        await gone;
        expect(performance.now() - stoppedAt).toBeGreaterThanOrEqual(DELAY_SECONDS * 1_000);
        expect(await old.program.exitCode).toBe(0);
        members = members.filter((member) => member !== old);
      }
      balancing.abort();
      await balancer;
      expect(results.length).toBeGreaterThan(50);
      expect(results.filter((result) => result !== '200')).toEqual([]);
    },
    SLOW,
  );
});

describe.each([
  ['api', 'PORT'],
  ['dispatcher', 'HEALTH_PORT'],
] as const)('a start of the %s without a database', (name, setting) => {
  it(
    'waits, is alive and not ready meanwhile, and goes on once the database responds',
    async () => {
      const line = await DatabaseProxy.to(database.url);
      await line.cut();
      const port = await findFreePort();
      const program = start(name, { [setting]: `${port}` }, line.url);
      const waiting = /The database .* cannot be used: .*ECONNREFUSED.* Waiting for it\./g;
      await eventually(program.output, (text) => waiting.test(text), SLOW);
      expect(await send(port, '/health/live')).toBe('200');
      expect(await send(port, '/health/ready')).toBe('503');
      expect(await send(port, '/api/v1/status')).toBe('503');
      await wait(2_500);
      expect(program.output().match(waiting)).toHaveLength(1);

      await line.mend();
      await eventually(
        () => send(port, '/health/ready'),
        (result) => result === '200',
        SLOW,
      );
      expect(program.output()).toContain('the database responds');
      await line.close();
    },
    SLOW,
  );

  it(
    'ends at once when it is asked to stop, and with 1 after START_WAIT_SECONDS',
    async () => {
      const nowhere = 'postgres://u:p@127.0.0.1:1/none';
      const stopped = start(name, {}, nowhere);
      await eventually(stopped.output, (text) => text.includes('Waiting for it'), SLOW);
      await stopped.kill('SIGTERM');
      expect(await stopped.exitCode).toBe(0);

      const impatient = start(name, { START_WAIT_SECONDS: '1' }, nowhere);
      expect(await impatient.exitCode).toBe(1);
      expect(impatient.output()).toMatch(/cannot be used: .*ECONNREFUSED/);
    },
    SLOW,
  );
});

async function startMember(): Promise<Member> {
  const port = await findFreePort();
  const settings = { PORT: `${port}`, SHUTDOWN_DELAY_SECONDS: `${DELAY_SECONDS}` };
  const program = start('api', settings, database.url);
  const member = { port, program, readyAt: 0 };
  await eventually(
    () => send(port, '/health/ready'),
    (result) => result === '200',
    SLOW,
  );
  return member;
}

function start(
  name: 'api' | 'dispatcher',
  settings: NodeJS.ProcessEnv,
  databaseUrl: string,
): Program {
  const program = startProgram(
    `dist/apps/${name}/main.js`,
    createTestEnvironment(databaseUrl, { LOG_LEVEL: 'info', HEALTH_PORT: '0', ...settings }),
  );
  programs.push(program);
  return program;
}

/** Sends requests in turn to every process that was ready within the last second, and never tries one again. */
async function balance(
  getMembers: () => Member[],
  results: string[],
  signal: AbortSignal,
): Promise<void> {
  const checking = setInterval(() => {
    for (const member of getMembers()) {
      const sentAt = performance.now();
      void send(member.port, '/health/ready').then((result) => {
        if (result === '200') member.readyAt = sentAt;
      });
    }
  }, 100);
  for (let requestCount = 0; !signal.aborted; requestCount++) {
    const ready = getMembers().filter(({ readyAt }) => performance.now() - readyAt < LAG_MS);
    const member = ready[requestCount % Math.max(ready.length, 1)];
    if (member) results.push(await send(member.port, '/api/v1/status'));
    await wait(10);
  }
  clearInterval(checking);
}

/** Sends a request on a connection of its own, and returns its status or the code of the error. */
function send(port: number, path: string): Promise<string> {
  return new Promise((resolve) => {
    const sending = request({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      response.resume();
      response.once('close', () => resolve(`${response.statusCode}`));
    });
    sending.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    sending.end();
  });
}
