import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { mock } from 'node:test';
import { Logger } from '@nestjs/common';
import { exitAfterTimeout } from './stop.js';

afterEach(() => {
  mock.timers.reset();
  jest.restoreAllMocks();
});

describe('exitAfterTimeout', () => {
  it('exits with 1 after 15 s: a shutdown that hangs is no clean stop', () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const exit = jest.spyOn(process, 'exit').mockImplementation(() => undefined as never);
    exitAfterTimeout();
    mock.timers.tick(14_999);
    expect(exit).not.toHaveBeenCalled();
    mock.timers.tick(1);
    expect(exit).toHaveBeenCalledWith(1);
    expect(warn).toHaveBeenCalledTimes(1);
  });
});
