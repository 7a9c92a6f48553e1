import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { UnavailableError } from '#platform/kernel/errors.js';
import type { Job, JobQueue } from './job-queue.js';
import { eventually } from '../../../test/support/jest/eventually.js';
import { JobRunner, runJob } from './job-runner.js';

// No poll comes: the time stands still.
beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

it('looks for jobs when it is woken, and once more when it is woken meanwhile', async () => {
  const runner = new JobRunner(new Logger());
  let claimCount = 0;
  const finished = new Promise<void>((resolve) => {
    runner.start({
      queue: { onDue: () => () => undefined } as unknown as JobQueue<object>,
      concurrency: 1,
      claim: () => {
        claimCount++;
        if (claimCount === 3) resolve();
        if (claimCount === 2) runner.wake();
        return Promise.resolve([]);
      },
      describeFailure: () => '',
      attempt: () => Promise.resolve(),
    });
  });
  expect(claimCount).toBe(1);
  runner.wake();
  await finished;
  await runner.stop(0);
  expect(claimCount).toBe(3);
});

it('looks for jobs again after it has found fewer than it could do', async () => {
  const runner = new JobRunner(new Logger());
  const limits: number[] = [];
  const finished = new Promise<void>((resolve) => {
    runner.start({
      queue: { onDue: () => () => undefined } as unknown as JobQueue<object>,
      concurrency: 4,
      claim: (limit) => {
        limits.push(limit);
        if (limits.length === 3) resolve();
        const job = { attempts: 1, leaseUntil: '', claimedAt: 0, process: null };
        return Promise.resolve(limits.length < 3 ? [job] : []);
      },
      describeFailure: () => '',
      attempt: () => Promise.resolve(),
    });
  });
  await finished;
  await runner.stop(0);
  expect(limits).toHaveLength(3);
});

it('fills the places of attempts that ended while it looked for jobs', async () => {
  const runner = new JobRunner(new Logger());
  const ends: (() => void)[] = [];
  let claimCount = 0;
  const finished = new Promise<void>((resolve) => {
    runner.start({
      queue: { onDue: () => () => undefined } as unknown as JobQueue<object>,
      concurrency: 4,
      claim: async (limit) => {
        claimCount++;
        if (claimCount === 2) for (const end of ends) end();
        if (claimCount === 3) resolve();
        // The attempts end before the jobs are there.
        await settlePromises();
        const job = { attempts: 1, leaseUntil: '', claimedAt: 0, process: null };
        return claimCount < 3 ? Array.from({ length: limit }, () => job) : [];
      },
      describeFailure: () => '',
      attempt: () =>
        new Promise((resolve) => {
          ends.push(resolve);
          if (ends.length >= 4) for (const end of ends.slice(2)) end();
        }),
    });
  });
  await finished;
  await runner.stop(0);
  expect(claimCount).toBe(3);
});

it('begins nothing that it claims while it is stopped, and leaves it to others at once', async () => {
  const runner = new JobRunner(new Logger());
  const released: number[] = [];
  const attempts: number[] = [];
  let endClaim: (jobs: Job<{ id: number }>[]) => void = () => undefined;
  runner.start<{ id: number }>({
    queue: {
      onDue: () => () => undefined,
      release: ({ id }: { id: number }) => Promise.resolve(released.push(id)),
    } as unknown as JobQueue<{ id: number }>,
    concurrency: 4,
    claim: () => new Promise((resolve) => (endClaim = resolve)),
    describeFailure: () => '',
    attempt: ({ id }) => Promise.resolve(void attempts.push(id)),
  });
  const stopped = runner.stop(0);
  endClaim([1, 2].map((id) => ({ id, attempts: 1, leaseUntil: '', claimedAt: 0, process: null })));
  await stopped;
  expect([attempts, released]).toEqual([[], [1, 2]]);
});

it.each([
  [
    'the event store is unavailable',
    new UnavailableError('The event store cannot be reached'),
    true,
  ],
  ['the connection is lost', Object.assign(new Error('reset'), { code: 'ECONNRESET' }), true],
  ['anything else fails', new Error('a fault'), false],
])('counts no attempt if %s: %s', async (_, error, isReleased) => {
  const releases: number[] = [];
  const queue = {
    schedule: { delaysMs: [], lastRepeats: false, maxRequestedMs: 0, isSpread: false },
    release: (_job: unknown, delayMs: number) => Promise.resolve(releases.push(delayMs)),
  } as unknown as JobQueue<object>;
  const job = { attempts: 100, leaseUntil: '', claimedAt: 0, process: null };
  const handler = {
    queue,
    concurrency: 1,
    claim: () => Promise.resolve([]),
    describeFailure: () => 'the job failed',
    attempt: () => Promise.reject(error),
  };
  await runJob(handler, job, new Logger(), new AbortController().signal);
  expect(releases).toEqual(isReleased ? [5_000] : []);
});

it.each([
  ['a job that is done', { kind: 'done' }, 'finish'],
  ['a job that failed', { kind: 'failed', error: 'no', retryInMs: 9 }, 'postpone'],
  ['a job that was cut off', undefined, 'release'],
] as const)(
  'records %s as soon as the database is back, and attempts it once',
  async (_, outcome, change) => {
    jest.useRealTimers();
    const changes: string[] = [];
    const fail = (name: string) => () => {
      changes.push(name);
      return changes.length < 3 ? Promise.reject(createConnectionLoss()) : Promise.resolve();
    };
    const queue = {
      schedule: { delaysMs: [1], lastRepeats: true, maxRequestedMs: 0, isSpread: false },
      finish: fail('finish'),
      postpone: fail('postpone'),
      release: fail('release'),
    } as unknown as JobQueue<object>;
    let attemptCount = 0;
    const handler = {
      queue,
      concurrency: 1,
      claim: () => Promise.resolve([]),
      describeFailure: () => 'the job failed',
      attempt: () => {
        attemptCount++;
        return outcome ? Promise.resolve(outcome) : Promise.reject(createConnectionLoss());
      },
    };
    const job = { attempts: 1, leaseUntil: '', claimedAt: performance.now(), process: null };
    await runJob(handler, job, new Logger(), new AbortController().signal);
    expect(changes).toEqual([change, change, change]);
    expect(attemptCount).toBe(1);
  },
);

it('logs once why an outcome cannot be recorded at all', async () => {
  jest.useRealTimers();
  const lines: string[] = [];
  const write = (line: string) => lines.push(line);
  const errors = [createConnectionLoss(), new Error('permission denied')];
  const queue = {
    finish: () => Promise.reject(errors.shift() ?? new Error('once more')),
  } as unknown as JobQueue<object>;
  const handler = {
    queue,
    concurrency: 1,
    claim: () => Promise.resolve([]),
    describeFailure: () => 'the job failed',
    attempt: () => Promise.resolve({ kind: 'done' as const }),
  };
  const job = { attempts: 1, leaseUntil: '', claimedAt: performance.now(), process: null };
  const log = { warn: write, error: write } as unknown as Logger;
  await runJob(handler, job, log, new AbortController().signal);
  expect(lines).toEqual([
    'the job failed (reset), and goes on when that is over',
    'the job failed (permission denied), and is tried again in a minute',
  ]);
});

it('logs once for each outage that no work can be claimed', async () => {
  jest.useRealTimers();
  const lines: string[] = [];
  const log = { warn: (line: string) => lines.push(line) } as unknown as Logger;
  const runner = new JobRunner(log);
  let claimCount = 0;
  const finished = new Promise<void>((resolve) => {
    runner.start({
      queue: { onDue: () => () => undefined } as unknown as JobQueue<object>,
      concurrency: 1,
      claim: () => {
        claimCount++;
        if (claimCount === 3) resolve();
        return Promise.reject(createConnectionLoss());
      },
      describeFailure: () => '',
      attempt: () => Promise.resolve(),
    });
  });
  await finished;
  await runner.stop(0);
  expect(lines).toEqual(['no work can be claimed: reset']);
});

const createConnectionLoss = () => Object.assign(new Error('reset'), { code: 'ECONNRESET' });

/** Starts a runner with four slots and an endless backlog. @returns the limits of its claims, and how to end an attempt */
function startBacklog() {
  const runner = new JobRunner(new Logger());
  const limits: number[] = [];
  const ends: (() => void)[] = [];
  runner.start({
    queue: { onDue: () => () => undefined } as unknown as JobQueue<object>,
    concurrency: 4,
    claim: (limit) => {
      limits.push(limit);
      const job = { attempts: 1, leaseUntil: '', claimedAt: 0, process: null };
      return Promise.resolve(Array.from({ length: limit }, () => job));
    },
    describeFailure: () => '',
    attempt: () => new Promise<void>((resolve) => ends.push(resolve)),
  });
  const stop = async () => {
    const stopping = runner.stop(0);
    for (const end of ends) end();
    await stopping;
  };
  return { limits, endOne: () => ends.shift()?.(), stop };
}

it('claims the jobs of a backlog when half of its slots are free', async () => {
  const { limits, endOne, stop } = startBacklog();
  await settlePromises();
  endOne();
  await settlePromises();
  expect(limits).toEqual([4]);
  endOne();
  await settlePromises();
  expect(limits).toEqual([4, 2]);
  await stop();
});

it('claims a job of a backlog a moment after a slot is free while all others hang', async () => {
  jest.useRealTimers();
  const { limits, endOne, stop } = startBacklog();
  await settlePromises();
  endOne();
  expect(
    await eventually(
      () => limits,
      ({ length }) => length > 1,
    ),
  ).toEqual([4, 1]);
  await stop();
});

async function settlePromises(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve();
}
