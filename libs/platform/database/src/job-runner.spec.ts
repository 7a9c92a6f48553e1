import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { JobQueue } from './job-queue.js';
import { JobRunner } from './job-runner.js';

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
