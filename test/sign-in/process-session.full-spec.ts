import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { WindowCounts } from '#platform/database/window-counts.js';
import { runJob } from '#platform/database/job-runner.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { ProcessLink } from '#platform/database/process-link.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { GeocodingQueue } from '#outbound/geocoding/geocoding-queue.service.js';
import { MailOutbox } from '#outbound/messages/mail-outbox.service.js';
import { testConfig, createTestDatabase, type TestDatabase } from '../support/database/database.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { eventually } from '../support/jest/eventually.js';
import { createMailHandler } from '../support/services/message-dispatcher.js';

/** A process as the others see it, with a table whose rows it leases. */
type Process = { session: ProcessSession; pool: Pool; die: () => Promise<void> };

/** Between two checks of the other processes, at least. */
const CHECK_INTERVAL_MS = 400;

let database: TestDatabase;
let processes: Process[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  await database.query(
    'create table leases (id int primary key, holder int, ends_at timestamptz not null)',
  );
  await database.query('grant all on leases to public');
});
beforeEach(async () => {
  await database.query('truncate leases');
});
afterEach(async () => {
  for (const { die } of processes) await die();
  processes = [];
});
afterAll(() => database.close());

async function startProcess(url = database.url): Promise<Process> {
  const pool = new Pool({ connectionString: url });
  pool.on('error', () => undefined);
  const link = new ProcessLink(testConfig(url), 'test');
  const session = new ProcessSession(pool, link);
  session.addLeases({ name: 'leases', holder: 'holder', endsAt: 'ends_at' });
  await session.start('dispatcher');
  let isDead = false;
  const die = async () => {
    if (isDead) return;
    isDead = true;
    await link.onApplicationShutdown();
    await pool.end();
  };
  const started = { session, pool, die };
  processes.push(started);
  return started;
}

/** Leases a row for ten minutes, so that only a death ends the lease within the test. */
const lease = (id: number, holder: number | null) =>
  database.query(`insert into leases values ($1, $2, now() + interval '10 minutes')`, [id, holder]);

async function listEndedLeases(): Promise<number[]> {
  const { rows } = await database.query<{ id: number }>(
    'select id from leases where ends_at <= now() order by id',
  );
  return rows.map(({ id }) => id);
}

async function listProcesses(): Promise<number[]> {
  const { rows } = await database.query<{ number: number }>(
    'select distinct number from es.processes order by number',
  );
  return rows.map(({ number }) => number);
}

/** Ends the connection that holds the session of a process, as a network or an administrator does. */
const cutSession = (number: number | null) =>
  database.query('select pg_terminate_backend(pid) from es.processes where number = $1', [number]);

/** Waits until a process has come, died and been noticed, after which every living process would have been too. */
async function waitUntilADeathIsNoticed(): Promise<void> {
  const witness = await startProcess();
  await lease(999, witness.session.number);
  await witness.die();
  await eventually(listEndedLeases, (ids) => ids.includes(999));
}

describe('the leases of a process', () => {
  it('end when it dies, and those of the others do not', async () => {
    const [one, other] = [await startProcess(), await startProcess()];
    await lease(1, one.session.number);
    await lease(2, other.session.number);
    await one.die();
    expect(await eventually(listEndedLeases, (ids) => ids.length > 0)).toEqual([1]);
  });

  it('end when the only process is started again after its death', async () => {
    const process = await startProcess();
    await lease(1, process.session.number);
    await process.die();
    const { session } = await startProcess();
    await lease(2, session.number);
    expect(await eventually(listEndedLeases, (ids) => ids.length > 0)).toEqual([1]);
  });

  it('do not end while it comes back after its connection was cut', async () => {
    const [one, other] = [await startProcess(), await startProcess()];
    const cutAndReturn = async () => {
      await database.query('truncate leases');
      await lease(1, one.session.number);
      const cutAt = performance.now();
      await cutSession(one.session.number);
      const heldSince = await eventually(
        () => one.session.heldSince,
        (since) => since > cutAt && since !== Infinity,
      );
      return heldSince - cutAt;
    };
    // Two checks may find a process missing that takes longer.
    await eventually(cutAndReturn, (tookMs) => tookMs < CHECK_INTERVAL_MS);
    await waitUntilADeathIsNoticed();
    expect(await listEndedLeases()).toEqual([999]);
    expect(await listProcesses()).toEqual([one.session.number, other.session.number]);
  });

  it('do not end when all sessions end at once', async () => {
    const [one, other] = [await startProcess(), await startProcess()];
    await lease(1, one.session.number);
    await lease(2, other.session.number);
    await database.query('select pg_terminate_backend(pid) from es.processes');
    await eventually(listProcesses, (numbers) => numbers.length === 2);
    await waitUntilADeathIsNoticed();
    expect(await listEndedLeases()).toEqual([999]);
  });

  it('have to run out without a session', async () => {
    const link = new ProcessLink(testConfig(database.url), 'test');
    const session = new ProcessSession(new Pool(), link);
    expect(session.leaseHolder).toBeNull();
    await startProcess();
    await lease(1, session.leaseHolder);
    await waitUntilADeathIsNoticed();
    expect(await listEndedLeases()).toEqual([999]);
  });
});

describe('jobs', () => {
  const queue = (id: number, dueIn: string) =>
    database.query(
      `insert into geocoding_queue (location_id, account_id, due_at) values ($1, 1, now() + $2::interval)`,
      [id, dueIn],
    );

  async function startWatcher(table: string): Promise<{ process: Process; delays: number[] }> {
    const process = await startProcess();
    const delays: number[] = [];
    process.session.onDue(table, (delayMs) => delays.push(delayMs));
    return { process, delays };
  }

  afterEach(async () => {
    await database.query('truncate geocoding_queue');
  });

  it('are announced to all processes once they are due within seconds, however that comes about', async () => {
    const watchers = [await startWatcher('geocoding_queue'), await startWatcher('geocoding_queue')];
    const lastDelays = async (count: number) =>
      Promise.all(
        watchers.map(async ({ delays }) =>
          (
            await eventually(
              () => delays,
              ({ length }) => length === count,
            )
          ).at(-1),
        ),
      );
    await queue(1, '0');
    expect(await lastDelays(1)).toEqual([0, 0]);
    await queue(2, '1 hour');
    await database.query(`update geocoding_queue set due_at = now() + interval '1 minute'`);
    await database.query(
      `update geocoding_queue set due_at = now() + interval '4 seconds' where location_id = 2`,
    );
    for (const delay of await lastDelays(2)) {
      expect(delay).toBeGreaterThan(0);
      expect(delay).toBeLessThanOrEqual(4_000);
    }
    await database.query('update geocoding_queue set due_at = now()');
    expect(await lastDelays(3)).toEqual([0, 0]);
  });

  it('may have been missed while the session was cut', async () => {
    const { process, delays } = await startWatcher('geocoding_queue');
    await cutSession(process.session.number);
    expect(
      await eventually(
        () => delays,
        ({ length }) => length > 0,
      ),
    ).toEqual([0]);
    await queue(1, '0');
    expect(
      await eventually(
        () => delays,
        ({ length }) => length > 1,
      ),
    ).toEqual([0, 0]);
  });

  it('are not trusted to be its own by a process whose session was lost since it has claimed them', async () => {
    const { session, pool } = await startProcess();
    const jobs = new GeocodingQueue(pool, session);
    await queue(1, '0');
    const [job] = await jobs.claim(1);
    if (!job) throw new Error('nothing was claimed');
    expect(jobs.isLeased(job)).toBe(true);
    const { heldSince } = session;
    await cutSession(session.number);
    await eventually(
      () => session.heldSince,
      (since) => since !== heldSince && since !== Infinity,
    );
    expect(jobs.isLeased(job)).toBe(false);
    await jobs.postpone(job, 0, 'not sent');
    const [next] = await jobs.claim(1);
    expect([next?.attempts, next && jobs.isLeased(next)]).toEqual([2, true]);
  });

  // As after a freeze, when the others have ended its leases.
  it('are given up before an e-mail is sent, if the session was lost meanwhile', async () => {
    const { session, pool } = await startProcess();
    const mails = await MailServer.start();
    try {
      const settings = { SMTP_URL: mails.url, MAIL_FROM: 'Inkpad <inkpad@shop.example>' };
      const config = testConfig(database.url, settings);
      const keys = new MasterKeys(pool, config);
      await keys.onModuleInit();
      const outbox = new MailOutbox(keys, new WindowCounts(keys), config);
      const handler = createMailHandler(pool, session, outbox, config);
      await outbox.add(pool, [{ to: 'dora@mail.example', subject: 'Hello', text: 'Hello' }]);
      const attempt = async () => {
        const [job] = await handler.claim(1);
        if (!job) throw new Error('nothing was claimed');
        await runJob(handler, job, new Logger('mail'), AbortSignal.timeout(60_000));
      };
      const release = mails.holdRecipients();
      const first = attempt();
      await eventually(
        () => mails.named,
        (count) => count === 1,
      );
      const { heldSince } = session;
      await cutSession(session.number);
      await eventually(
        () => session.heldSince,
        (since) => since !== heldSince && since !== Infinity,
      );
      release();
      await first;
      expect(mails.received).toEqual([]);
      await database.query(`update outgoing_messages set due_at = now() where kind = 'mail'`);
      await attempt();
      expect(mails.received).toHaveLength(1);
    } finally {
      await mails.goAway();
    }
  });

  it('of another kind or channel of messages are not announced', async () => {
    const { process, delays } = await startWatcher('outgoing_messages:card_link:email');
    const others: number[] = [];
    for (const jobs of ['outgoing_messages:campaign:email', 'outgoing_messages:card_link:sms']) {
      process.session.onDue(jobs, (delayMs) => others.push(delayMs));
    }
    await database.query(
      `insert into outgoing_messages (kind, account_id, customer_id, channel, due_at, give_up_at)
       values ('card_link', 1, 1, 'email', now(), now()), ('card_link', 1, 1, 'email', now() + interval '1 hour', now())`,
    );
    expect(
      await eventually(
        () => delays,
        ({ length }) => length > 0,
      ),
    ).toEqual([0]);
    expect(others).toEqual([]);
    await database.query('delete from outgoing_messages');
  });

  it('of another table are not announced, and those of dead processes are', async () => {
    const { delays } = await startWatcher('leases');
    await queue(1, '0');
    await waitUntilADeathIsNoticed();
    expect(
      await eventually(
        () => delays,
        ({ length }) => length > 0,
      ),
    ).toEqual([0]);
  });
});

describe('a process', () => {
  it('does not trust its session while the database is silent, and does again afterwards', async () => {
    const proxy = await DatabaseProxy.to(database.url);
    try {
      const { session } = await startProcess(proxy.url);
      await lease(1, session.number);
      expect(session.isHeld).toBe(true);
      proxy.mute();
      await eventually(
        () => session.isHeld,
        (isHeld) => !isHeld,
      );
      expect(session.leaseHolder).toBeNull();
      // New connections work. The server still has the silent one, with the same lock.
      proxy.unmute();
      proxy.muteOpen();
      await eventually(
        () => session.isHeld,
        (isHeld) => isHeld,
      );
      expect(await listProcesses()).toEqual([session.number]);
      expect(await listEndedLeases()).toEqual([]);
    } finally {
      for (const { die } of processes) await die();
      await proxy.close();
    }
  });

  it('never gets the number of another one that runs, whatever the sequence says', async () => {
    const one = await startProcess();
    await database.query(`select setval('es.process_numbers', ${one.session.number}, false)`);
    const other = await startProcess();
    expect(other.session.number).toBe((one.session.number ?? 0) + 1);
    expect([one.session.peerCount, other.session.isHeld]).toEqual([expect.any(Number), true]);
    await eventually(
      () => one.session.peerCount,
      (count) => count === 1,
    );
  });
});
