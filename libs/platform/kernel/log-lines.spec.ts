import { describe, expect, it } from '@jest/globals';
import { findLogFormat, renderLogLine, renderStack } from './log-lines.js';

describe('findLogFormat', () => {
  it.each([
    [{ LOG_FORMAT: 'json' }, 'json'],
    [{ LOG_FORMAT: ' json ' }, 'json'],
    [{ LOG_FORMAT: 'text', NODE_ENV: 'production' }, 'text'],
    [{ NODE_ENV: 'production' }, 'json'],
    [{ LOG_FORMAT: 'yaml', NODE_ENV: 'production' }, 'json'],
    [{ LOG_FORMAT: '' }, 'text'],
    [{}, 'text'],
  ])('of %j is %s', (environment, format) => {
    expect(findLogFormat(environment)).toBe(format);
  });
});

describe('renderLogLine', () => {
  it('writes several lines of a message as one', () => {
    const line = renderLogLine({ level: 'fatal', program: 'api', message: 'two\nlines' });
    expect(line).not.toContain('\n');
    expect(JSON.parse(line)).toEqual({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      level: 'fatal',
      process: 'api',
      pid: process.pid,
      message: 'two\nlines',
    });
  });
});

describe('renderStack', () => {
  it('has the causes of an error, and none of their properties', () => {
    const cause = Object.assign(new Error('the cause'), { detail: 'Key (email)=(a@b.example)' });
    const text = renderStack(new AggregateError([new Error('the first')], 'both', { cause }));
    expect(text).toMatch(/^AggregateError: both\n {4}at /);
    expect(text).toContain('Caused by: Error: the first\n    at ');
    expect(text).toContain('Caused by: Error: the cause\n    at ');
    expect(text).not.toContain('a@b.example');
  });

  it('accepts what is no error', () => {
    expect(renderStack('gone')).toBe('gone');
  });
});
