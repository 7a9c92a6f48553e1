import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Registry } from 'prom-client';
import type { Job, JobOutcome } from './job-queue.js';
import type { JobHandler } from './job-runner.js';
import { QueueMetrics } from './queue-metrics.js';

type Item = { id: number };

const JOB: Job<Item> = { id: 1, attempts: 1, leaseUntil: '', claimedAt: 0, process: null };
const { signal } = new AbortController();

function watch(handler: Pick<JobHandler<Item>, 'claim' | 'attempt'>) {
  const registry = new Registry();
  const watched = new QueueMetrics(registry).watch('mail', handler as JobHandler<Item>);
  return { registry, watched };
}

const readAttempts = async (registry: Registry) =>
  (await registry.metrics())
    .split('\n')
    .filter((line) => line.startsWith('inkpad_queue_attempts_total'))
    .map((line) => line.replace(/^.*queue="mail",outcome="(\w+)"\} /, '$1 '));

afterEach(() => {
  jest.restoreAllMocks();
});

describe('QueueMetrics', () => {
  it('counts attempts by their outcome, from the start on', async () => {
    const outcomes: (JobOutcome | Error | undefined)[] = [
      { kind: 'done' },
      { kind: 'failed', error: 'away' },
      { kind: 'refused', error: 'never' },
      { kind: 'unsent' },
      undefined,
      new Error('lost'),
    ];
    const { registry, watched } = watch({
      claim: async () => [],
      attempt: async () => {
        const outcome = outcomes.shift();
        if (outcome instanceof Error) throw outcome;
        return outcome;
      },
    });
    expect(await readAttempts(registry)).toEqual(['done 0', 'failed 0', 'refused 0', 'unsent 0']);
    for (let i = 0; i < 5; i++) await watched.attempt(JOB, signal, () => true);
    await expect(watched.attempt(JOB, signal, () => true)).rejects.toThrow('lost');
    expect(await readAttempts(registry)).toEqual(['done 2', 'failed 2', 'refused 1', 'unsent 1']);
  });

  it('measures the time since a claim that the database has confirmed', async () => {
    let now = 1_000;
    jest.spyOn(performance, 'now').mockImplementation(() => now);
    let claim: () => Promise<Job<Item>[]> = async () => [];
    const { registry, watched } = watch({
      claim: () => claim(),
      attempt: async () => undefined,
    });
    const readAge = async () =>
      Number(
        /inkpad_queue_unclaimed_seconds\{queue="mail"\} (\S+)/.exec(await registry.metrics())?.[1],
      );
    now += 3_000;
    expect(await readAge()).toBeCloseTo(3);
    claim = () => Promise.reject(new Error('away'));
    await expect(watched.claim(1)).rejects.toThrow('away');
    now += 3_000;
    expect(await readAge()).toBeCloseTo(6);
    claim = async () => [JOB];
    expect(await watched.claim(1)).toEqual([JOB]);
    expect(await readAge()).toBeCloseTo(0);
    now += 500;
    expect(await readAge()).toBeCloseTo(0.5);
  });
});
