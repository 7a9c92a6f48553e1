import { expect, it } from '@jest/globals';
import { runNode } from '../support/program.js';

it('the demonstration of wallets shows stamps arriving on a phone', () => {
  // Settings for another service, which it leaves alone.
  const env = { ...process.env, DATABASE_URL: 'postgres://other@127.0.0.1:1/other', PORT: 'none' };
  const { status, output } = runNode(['scripts/demo-wallet.mjs'], env);
  expect({ status, output }).toEqual({
    status: 0,
    output: expect.stringMatching(
      /shows: {2}You have 2 stamps[^]+shows: {2}Reward unlocked: Free coffee[^]+Everything works as expected/,
    ),
  });
});
