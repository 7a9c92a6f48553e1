import { expect } from '@jest/globals';
import type { Aggregate, DomainEvent } from '#kernel/aggregate.js';
import { RejectedError, type FieldErrors } from '#kernel/errors.js';

export const AT = '2026-03-01T10:00:00.000Z';

/**
 * given(aggregate, ...events).when(decision).then(...events): tests a decision from the outside.
 * Past events happened at AT unless `at` says otherwise.
 */
export function given<S extends { accountId: number }, E extends DomainEvent>(
  aggregate: Aggregate<S, E>,
  ...past: (E & { at?: string })[]
) {
  const state = fold(aggregate, undefined, past);
  return {
    state: () => {
      if (state === undefined) throw new Error('nothing was given');
      return state;
    },
    when: (decide: (state: S | undefined) => E[]) => ({
      then: (...expected: E[]) => expect(decide(state)).toEqual(expected),
      thenState: (expected: Partial<S>) =>
        expect(fold(aggregate, state, decide(state))).toMatchObject(expected),
      thenThrows: (error: new (...args: never[]) => Error) =>
        expect(() => decide(state)).toThrow(error),
      thenRejected: (expected: {
        fields?: string[];
        errors?: FieldErrors;
        code?: RejectedError['code'];
        advice?: RegExp;
      }) => {
        let thrown: unknown;
        try {
          decide(state);
        } catch (error) {
          thrown = error;
        }
        expect(thrown).toBeInstanceOf(RejectedError);
        const { errors, code, resolution } = thrown as RejectedError;
        if (expected.errors) expect(errors).toEqual(expected.errors);
        if (expected.fields) expect(Object.keys(errors)).toEqual(expected.fields);
        if (expected.code) expect(code).toBe(expected.code);
        if (expected.advice) expect(resolution).toMatch(expected.advice);
      },
    }),
  };
}

function fold<S extends { accountId: number }, E extends DomainEvent>(
  aggregate: Aggregate<S, E>,
  from: S | undefined,
  events: (E & { at?: string })[],
): S | undefined {
  return events.reduce<S | undefined>((state, { at = AT, ...event }, i) => {
    const meta = {
      accountId: 1,
      actor: { type: 'token', id: 1 },
      channel: 'api',
      requestId: 'spec',
      occurredAt: at,
      recordedAt: at,
    } as const;
    return aggregate.evolve(state, { ...(event as unknown as E), id: `event-${i}`, meta });
  }, from);
}
