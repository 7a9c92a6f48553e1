import { describe, expect, it } from '@jest/globals';
import { addToWait, DatabaseWait, findWait, runWithWait } from './database-waits.js';

describe('DatabaseWait', () => {
  let now = 1_000;
  const create = () => new DatabaseWait(() => now);
  const pass = (ms: number) => (now += ms);

  it('adds up waits that follow one another', () => {
    const wait = create();
    wait.start();
    pass(30);
    wait.end();
    pass(1_000);
    wait.start();
    pass(12);
    wait.end();
    expect(wait.milliseconds).toBe(42);
  });

  it('counts waits at the same time once', () => {
    const wait = create();
    wait.start();
    pass(10);
    wait.start();
    pass(10);
    wait.end();
    pass(10);
    wait.end();
    expect(wait.milliseconds).toBe(30);
  });

  it('counts a wait that has not ended', () => {
    const wait = create();
    wait.start();
    pass(7);
    expect(wait.milliseconds).toBe(7);
  });
});

describe('addToWait', () => {
  it('adds to the wait of the request alone that runs it, also when the promise is rejected', async () => {
    const [own, otherWait] = [new DatabaseWait(), new DatabaseWait()];
    const refused = Promise.reject(new Error('refused'));
    let result: Promise<unknown> | undefined;
    runWithWait(own, () => {
      expect(findWait()).toBe(own);
      result = addToWait(refused);
      runWithWait(otherWait, () => expect(findWait()).toBe(otherWait));
    });
    await expect(result).rejects.toThrow('refused');
    const { milliseconds } = own;
    expect(milliseconds).toBeGreaterThanOrEqual(0);
    expect(own.milliseconds).toBe(milliseconds);
    expect(otherWait.milliseconds).toBe(0);
  });

  it('returns the promise itself outside of requests', () => {
    const result = Promise.resolve();
    expect(addToWait(result)).toBe(result);
  });
});
