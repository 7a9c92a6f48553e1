import { describe, expect, it } from '@jest/globals';
import {
  addToWait,
  createSharedWait,
  DatabaseWait,
  findWait,
  runAsCommit,
  runOutside,
  runWithWait,
} from './database-waits.js';

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

describe('createSharedWait', () => {
  it('lets each request wait while their work does, and counts it as the first one with an owner', () => {
    let now = 0;
    const waits = [new DatabaseWait(() => now), new DatabaseWait(() => now)];
    const [one, two] = waits;
    if (two) two.owner = 7;
    const shared = createSharedWait([one, undefined, two]);
    expect(shared?.getOwner()).toBe(7);
    shared?.start();
    now += 5;
    shared?.end();
    expect(waits.map(({ milliseconds }) => milliseconds)).toEqual([5, 5]);
  });

  it('is no large read and has no client, whatever the requests are', () => {
    const wait = new DatabaseWait(
      undefined,
      () => true,
      undefined,
      () => true,
    );
    wait.readsMuch = true;
    const shared = createSharedWait([wait]);
    expect([shared?.readsMuch, shared?.isAbandoned(), shared?.isFinished()]).toEqual([
      false,
      false,
      false,
    ]);
  });

  it('is none outside of requests', () => {
    expect(createSharedWait([undefined, undefined])).toBeUndefined();
  });
});

describe('runAsCommit', () => {
  it('counts for its request, apart from what else its owner does', () => {
    let now = 0;
    const wait = new DatabaseWait(() => now);
    wait.owner = 7;
    runWithWait(wait, () =>
      runAsCommit(() => {
        const own = findWait();
        expect([own === wait, own?.getOwner()]).toEqual([false, 'commits of 7']);
        own?.start();
        now += 3;
        own?.end();
      }),
    );
    expect(wait.milliseconds).toBe(3);
  });

  it('runs outside of requests as it is', () => {
    runAsCommit(() => expect(findWait()).toBeUndefined());
  });
});

describe('runOutside', () => {
  it('runs work in no request, and what that starts', async () => {
    const seen = await new Promise((resolve) => {
      runWithWait(new DatabaseWait(), () =>
        runOutside(() => setImmediate(() => resolve(findWait()))),
      );
    });
    expect(seen).toBeUndefined();
  });
});
