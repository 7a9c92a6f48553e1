import { describe, expect, it } from '@jest/globals';
import { UnavailableError, UnknownOutcomeError } from '#platform/kernel/errors.js';
import { retryWhileUnknown } from './retry-while-unknown.js';

const lost = new Error('Connection terminated unexpectedly');
const unavailable = new UnavailableError('The database cannot be reached');
const failure = new Error('a bug');
const longAgo = () => performance.now() - 60_000;

/** Creates a write whose tries end as listed, and that records what each was told. */
function createWrite(...ends: (Error | string)[]) {
  const tries: boolean[] = [];
  const attempt = async (isUnknown: boolean) => {
    const end = ends[tries.push(isUnknown) - 1];
    if (end instanceof Error) throw end;
    return end;
  };
  return { tries, attempt };
}

describe('retryWhileUnknown', () => {
  it('repeats one whose connection was lost, and tells it that it may have been written', async () => {
    const { tries, attempt } = createWrite(lost, 'written');
    await expect(retryWhileUnknown(attempt)).resolves.toBe('written');
    expect(tries).toEqual([false, true]);
  });

  it.each([
    ['an unavailable database', unavailable],
    ['any other failure', failure],
  ])('reports %s at once when nothing was written', async (_name, error) => {
    const { tries, attempt } = createWrite(error);
    await expect(retryWhileUnknown(attempt)).rejects.toBe(error);
    expect(tries).toEqual([false]);
  });

  it('waits for the database once it may have been written', async () => {
    const { tries, attempt } = createWrite(lost, unavailable, 'written');
    await expect(retryWhileUnknown(attempt)).resolves.toBe('written');
    expect(tries).toEqual([false, true, true]);
  });

  it('reports a failure that is not of the database, even of one that may have been written', async () => {
    const { attempt } = createWrite(failure);
    await expect(retryWhileUnknown(attempt, { isUnknown: true })).rejects.toBe(failure);
  });

  it('reports the outcome as unknown after 30 seconds', async () => {
    const { attempt } = createWrite(lost);
    const retrying = retryWhileUnknown(attempt, { startedAt: longAgo() });
    await expect(retrying).rejects.toThrow(UnknownOutcomeError);
    await expect(retrying).rejects.toHaveProperty('cause', lost);
  });

  it('repeats what its caller says was not written, for as long as they say', async () => {
    const { tries, attempt } = createWrite(failure, failure, 'written');
    const isUnknownAfter = () => false;
    const written = retryWhileUnknown(attempt, { startedAt: longAgo(), isUnknownAfter });
    await expect(written).resolves.toBe('written');
    expect(tries).toEqual([false, false, false]);
  });
});
