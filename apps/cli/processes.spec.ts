import { describe, expect, it } from '@jest/globals';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findLastMessage, createFolder } from './processes.mjs';

describe('what a program said last', () => {
  it.each([
    [['starting', 'Settings that cannot be used:', '  PORT: must be a number', '  HOST: too']],
    [
      [
        'database: x',
        '',
        'Settings that cannot be used:',
        '  PORT: must be a number',
        '  HOST: too',
        '',
      ],
    ],
  ])('is its last message whole: %j', (lines) => {
    expect(findLastMessage(lines)).toBe(
      'Settings that cannot be used:\n  PORT: must be a number\n  HOST: too',
    );
  });

  it('is what went wrong where it is a stack trace', () => {
    const trace = ['hello', 'TypeError: x is not a function', '    at f (a.js:1:1)', '}', 'Node'];
    expect(findLastMessage(trace)).toBe('TypeError: x is not a function');
  });

  it('is nothing where it said nothing', () => {
    expect(findLastMessage(['', ' '])).toBeUndefined();
  });
});

describe('making a folder', () => {
  it('makes those above it as well', () => {
    const above = mkdtempSync(join(tmpdir(), 'inkpad-folder-'));
    createFolder(join(above, 'a', 'b'), 0o700);
    expect(existsSync(join(above, 'a', 'b'))).toBe(true);
    rmSync(above, { recursive: true });
  });

  it('ends where none can be made', () => {
    expect(() => createFolder('/proc/none/below', 0o700)).toThrow('ENOENT');
  });
});
