import { EventEmitter } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import type { FastifyReply } from 'fastify';
import { UnavailableError } from '#kernel/errors.js';
import type { AuthenticatedRequest } from './caller.js';
import { LargeResponses } from './large-responses.js';

/** A response of an account, and what has happened to its turn. */
function createResponse(answers: LargeResponses, accountId: number) {
  const raw = Object.assign(new EventEmitter(), { closed: false, destroy: () => undefined });
  const reply = { raw } as unknown as FastifyReply;
  const ask = () => answers.acquire({ accountId } as AuthenticatedRequest, reply);
  const answer = {
    turn: 'waits',
    close: async () => {
      raw.closed = true;
      raw.emit('close');
      await settled();
    },
    ask,
  };
  ask().then(
    () => (answer.turn = 'has it'),
    (error: Error) => (answer.turn = error.message),
  );
  return answer;
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

const many = (count: number, answers: LargeResponses, accountId: number) =>
  Array.from({ length: count }, () => createResponse(answers, accountId));

const turnsOf = (responses: { turn: string }[]) => responses.map(({ turn }) => turn);

describe('LargeResponses', () => {
  it('leaves room for responses of other accounts', async () => {
    const answers = new LargeResponses();
    const [first, second] = [many(4, answers, 1), many(1, answers, 2)];
    await settled();
    expect(turnsOf(first)).toEqual(['has it', 'has it', 'waits', 'waits']);
    expect(turnsOf(second)).toEqual(['has it']);
    for (const answer of [...first, ...second]) await answer.close();
  });

  it('runs four responses at a time and starts the next when one is sent', async () => {
    const answers = new LargeResponses();
    const responses = [1, 2, 3].flatMap((account) => many(2, answers, account));
    await settled();
    expect(turnsOf(responses).filter((turn) => turn === 'has it')).toHaveLength(4);
    for (const answer of responses) {
      expect(answer.turn).toBe('has it');
      await answer.ask();
      await answer.close();
    }
  });

  it('drops a response whose caller has disconnected', async () => {
    const answers = new LargeResponses();
    const [one, two, gone, next] = many(4, answers, 1);
    await gone?.close();
    expect(gone?.turn).toBe('The client has disconnected');
    await one?.close();
    expect(next?.turn).toBe('has it');
    await expect(one?.ask()).rejects.toThrow(UnavailableError);
    for (const answer of [two, next]) await answer?.close();
  });

  it('limits the length of its queue', async () => {
    const answers = new LargeResponses();
    const responses = many(2 + 16 + 1, answers, 1);
    await settled();
    expect(responses.at(-2)?.turn).toBe('waits');
    expect(responses.at(-1)?.turn).toBe('Too many large responses are in progress');
    for (const answer of responses) await answer.close();
  });
});
