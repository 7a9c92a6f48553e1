import { expect, it } from '@jest/globals';
import { FailureLog } from './failure-log.js';

it('a failure is logged once until the next success, and the success after it', () => {
  const lines: string[] = [];
  const failures = new FailureLog({
    warn: (message: string) => lines.push(`warn ${message}`),
    log: (message: string) => lines.push(`log ${message}`),
  });
  failures.succeed('again');
  failures.fail('first');
  failures.fail('second');
  failures.succeed('again');
  failures.succeed('again');
  failures.fail('third');
  failures.succeed();
  failures.fail('fourth');
  expect(lines).toEqual(['warn first', 'log again', 'warn third', 'warn fourth']);
});
