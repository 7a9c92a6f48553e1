import { EventEmitter } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import type { FastifyReply } from 'fastify';
import { UnavailableError } from '#platform/kernel/errors.js';
import type { AuthenticatedRequest } from './caller.js';
import { LargeResponses } from './large-responses.js';

/** Creates a large response of an account, and records whether it has its turn. */
function createResponse(largeResponses: LargeResponses, accountId: number) {
  const raw = Object.assign(new EventEmitter(), { closed: false, destroy: () => undefined });
  const reply = { raw } as unknown as FastifyReply;
  const acquire = () => largeResponses.acquire({ accountId } as AuthenticatedRequest, reply);
  const response = {
    turn: 'waits',
    close: async () => {
      raw.closed = true;
      raw.emit('close');
      await nextLoopTurn();
    },
    acquire,
  };
  acquire().then(
    () => (response.turn = 'has it'),
    (error: Error) => (response.turn = error.message),
  );
  return response;
}

const nextLoopTurn = () => new Promise((resolve) => setImmediate(resolve));

const createResponses = (count: number, largeResponses: LargeResponses, accountId: number) =>
  Array.from({ length: count }, () => createResponse(largeResponses, accountId));

const getTurns = (responses: { turn: string }[]) => responses.map(({ turn }) => turn);

describe('LargeResponses', () => {
  it('leaves room for responses of other accounts', async () => {
    const largeResponses = new LargeResponses();
    const [first, second] = [
      createResponses(4, largeResponses, 1),
      createResponses(1, largeResponses, 2),
    ];
    await nextLoopTurn();
    expect(getTurns(first)).toEqual(['has it', 'has it', 'waits', 'waits']);
    expect(getTurns(second)).toEqual(['has it']);
    for (const response of [...first, ...second]) await response.close();
  });

  it('runs four responses at a time and starts the next when one is sent', async () => {
    const largeResponses = new LargeResponses();
    const responses = [1, 2, 3].flatMap((account) => createResponses(2, largeResponses, account));
    await nextLoopTurn();
    expect(getTurns(responses).filter((turn) => turn === 'has it')).toHaveLength(4);
    for (const response of responses) {
      expect(response.turn).toBe('has it');
      await response.acquire();
      await response.close();
    }
  });

  it('drops a response whose client has disconnected', async () => {
    const largeResponses = new LargeResponses();
    const [one, two, disconnected, next] = createResponses(4, largeResponses, 1);
    await disconnected?.close();
    expect(disconnected?.turn).toBe('The client has disconnected');
    await one?.close();
    expect(next?.turn).toBe('has it');
    await expect(one?.acquire()).rejects.toThrow(UnavailableError);
    for (const response of [two, next]) await response?.close();
  });

  it('limits the length of its queue', async () => {
    const largeResponses = new LargeResponses();
    const responses = createResponses(2 + 16 + 1, largeResponses, 1);
    await nextLoopTurn();
    expect(responses.at(-2)?.turn).toBe('waits');
    expect(responses.at(-1)?.turn).toBe('Too many large responses are in progress');
    for (const response of responses) await response.close();
  });
});
