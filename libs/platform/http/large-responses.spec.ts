import { EventEmitter } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import type { FastifyReply } from 'fastify';
import { UnavailableError } from '#platform/kernel/errors.js';
import type { AuthenticatedRequest } from './caller.js';
import { LargeResponses } from './large-responses.js';

/** Creates a large response of an account, and records whether it has a slot. */
function createResponse(largeResponses: LargeResponses, accountId: number) {
  const raw = Object.assign(new EventEmitter(), { closed: false, destroy: () => undefined });
  const reply = { raw } as unknown as FastifyReply;
  const acquire = () => largeResponses.acquire({ accountId } as AuthenticatedRequest, reply);
  const response = {
    slot: 'waits',
    close: async () => {
      raw.closed = true;
      raw.emit('close');
      await nextIteration();
    },
    acquire,
  };
  acquire().then(
    () => (response.slot = 'has it'),
    (error: Error) => (response.slot = error.message),
  );
  return response;
}

const nextIteration = () => new Promise((resolve) => setImmediate(resolve));

const createResponses = (count: number, largeResponses: LargeResponses, accountId: number) =>
  Array.from({ length: count }, () => createResponse(largeResponses, accountId));

const getSlots = (responses: { slot: string }[]) => responses.map(({ slot }) => slot);

describe('LargeResponses', () => {
  it('leaves room for responses of other accounts', async () => {
    const largeResponses = new LargeResponses();
    const [first, second] = [
      createResponses(4, largeResponses, 1),
      createResponses(1, largeResponses, 2),
    ];
    await nextIteration();
    expect(getSlots(first)).toEqual(['has it', 'has it', 'waits', 'waits']);
    expect(getSlots(second)).toEqual(['has it']);
    for (const response of [...first, ...second]) await response.close();
  });

  it('runs four responses at a time and starts the next when one is sent', async () => {
    const largeResponses = new LargeResponses();
    const responses = [1, 2, 3].flatMap((account) => createResponses(2, largeResponses, account));
    await nextIteration();
    expect(getSlots(responses).filter((slot) => slot === 'has it')).toHaveLength(4);
    for (const response of responses) {
      expect(response.slot).toBe('has it');
      await response.acquire();
      await response.close();
    }
  });

  it('drops a response whose client has disconnected', async () => {
    const largeResponses = new LargeResponses();
    const [one, two, disconnected, next] = createResponses(4, largeResponses, 1);
    await disconnected?.close();
    expect(disconnected?.slot).toBe('The client has disconnected');
    await one?.close();
    expect(next?.slot).toBe('has it');
    await expect(one?.acquire()).rejects.toThrow(UnavailableError);
    for (const response of [two, next]) await response?.close();
  });

  it('limits the length of its queue', async () => {
    const largeResponses = new LargeResponses();
    const responses = createResponses(2 + 16 + 1, largeResponses, 1);
    await nextIteration();
    expect(responses.at(-2)?.slot).toBe('waits');
    expect(responses.at(-1)?.slot).toBe('Too many large responses are in progress');
    for (const response of responses) await response.close();
  });
});
