import { expect, it } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { Registry } from 'prom-client';
import type { DomainEvent } from '#platform/kernel/aggregate.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { DatabaseWait, findWait, runWithWait } from '#platform/database/database-waits.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';
import type { EventStore } from '../port/event-store.js';
import type { ReadModels } from '../read-models/read-models.js';
import type { CommandPlan } from './command-plan.js';
import { CommandPipeline } from './handle-command.js';
import { PipelineMetrics } from './pipeline-metrics.js';
import type { StoredResponses } from './stored-responses.js';

type Plan = CommandPlan<{ accountId: number }, DomainEvent, unknown, unknown>;

it('runs each batch in the context of its first command, and in the wait of no request', async () => {
  const times = new AsyncLocalStorage<string>();
  const loads: unknown[] = [];
  const ends: (() => void)[] = [];
  const readModels = {
    cache: { find: () => undefined },
    load: () => {
      loads.push([times.getStore(), findWait()?.isFinished()]);
      return new Promise((_, reject) => ends.push(() => reject(new NotFoundError('Thing'))));
    },
  } as unknown as ReadModels;
  const pipeline = new CommandPipeline(
    {} as EventStore,
    readModels,
    {} as PersonalKeys,
    {} as StoredResponses,
    new PipelineMetrics(new Registry()),
  );
  const plan = { readModel: { name: 'thing' }, id: 1 } as unknown as Plan;
  const finished = new DatabaseWait(undefined, undefined, undefined, () => true);
  const run = (time: string) =>
    runWithWait(finished, () => times.run(time, () => pipeline.handleCommand(plan)));
  const commands = [run('March'), run('April')];
  ends[0]?.();
  await expect(commands[0]).rejects.toThrow(NotFoundError);
  ends[1]?.();
  await expect(commands[1]).rejects.toThrow(NotFoundError);
  expect(loads).toEqual([
    ['March', false],
    ['April', false],
  ]);
});
