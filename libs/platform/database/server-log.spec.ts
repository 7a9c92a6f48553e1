import { describe, expect, it } from '@jest/globals';
import { findUnsafe } from './server-log.js';

/** What a session of Inkpad has that may set everything, on a server with its defaults. */
const SAFE = {
  log_error_verbosity: 'terse',
  log_parameter_max_length: '0',
  log_statement: 'none',
  log_min_duration_statement: '-1',
  log_min_duration_sample: '-1',
  log_transaction_sample_rate: '0',
};

describe('findUnsafe', () => {
  it('finds nothing when errors are terse and no parameters are logged', () => {
    expect(findUnsafe(SAFE)).toEqual([]);
    expect(findUnsafe({ ...SAFE, log_min_duration_statement: '0' })).toEqual([]);
  });

  it('finds details of errors, which have values of rows', () => {
    expect(findUnsafe({ ...SAFE, log_error_verbosity: 'default' })).toEqual([
      { name: 'log_error_verbosity', value: 'default', expected: 'terse' },
    ]);
  });

  it.each([
    ['log_statement', 'all'],
    ['log_statement', 'mod'],
    ['log_min_duration_statement', '0'],
    ['log_min_duration_statement', '500'],
    ['log_min_duration_sample', '0'],
    ['log_transaction_sample_rate', '0.01'],
  ])('finds parameters that %s = %s would log', (name, value) => {
    expect(findUnsafe({ ...SAFE, log_parameter_max_length: '-1', [name]: value })).toEqual([
      { name: 'log_parameter_max_length', value: '-1', expected: '0' },
    ]);
  });

  it('allows parameters while no statement is logged', () => {
    expect(findUnsafe({ ...SAFE, log_parameter_max_length: '-1' })).toEqual([]);
    const ddl = { ...SAFE, log_parameter_max_length: '-1', log_statement: 'ddl' };
    expect(findUnsafe(ddl)).toEqual([]);
  });

  it.each([
    ['auto_explain.log_min_duration', '100', '-1'],
    ['pgaudit.log_parameter', 'on', 'off'],
  ])('finds %s of an extension', (name, value, expected) => {
    expect(findUnsafe({ ...SAFE, [name]: value })).toEqual([{ name, value, expected }]);
    expect(findUnsafe({ ...SAFE, [name]: expected })).toEqual([]);
  });
});
