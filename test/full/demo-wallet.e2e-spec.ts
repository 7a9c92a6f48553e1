import { expect, it } from '@jest/globals';
import { runNode } from '../support/program.js';

it('the demonstration of wallets shows stamps arriving on a phone', () => {
  const { status, output } = runNode(['scripts/demo-wallet.mjs'], process.env);
  expect({ status, output }).toEqual({
    status: 0,
    output: expect.stringMatching(
      /shows: {2}You have 2 stamps[^]+shows: {2}Reward unlocked: Free coffee[^]+Everything works as expected/,
    ),
  });
});
