import { describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { QueryFailedError } from 'typeorm';
import { UnavailableError } from '#kernel/errors.js';
import { isConnectionLoss, isDatabaseUnavailable, isOutage, isTransient } from './connection.js';

function answered(code: string): pg.DatabaseError {
  const error = new pg.DatabaseError('refused', 0, 'error');
  error.code = code;
  return error;
}

describe('SQLSTATEs', () => {
  it.each(['53000', '53100', '53200', '53300', '53400', '25006', '58000', '58030', '58P01'])(
    '%s is an outage, whoever asks',
    (code) => {
      for (const error of [answered(code), new QueryFailedError('', [], answered(code))]) {
        expect([isOutage(error), isDatabaseUnavailable(error), isTransient(error)]).toEqual([
          true,
          true,
          true,
        ]);
        expect(isConnectionLoss(error)).toBe(false);
      }
    },
  );

  it.each(['57P01', '57P02', '57P03', '57P04', '57P05', '08006', '25P03', '25P04'])(
    '%s ends the connection',
    (code) => {
      expect([isConnectionLoss(answered(code)), isOutage(answered(code))]).toEqual([true, false]);
    },
  );

  it.each(['23505', '42P01', '42501', '22021', '25001', 'XX000', 'IP001'])(
    '%s is none of it',
    (code) => {
      expect([isTransient(answered(code)), isOutage(answered(code))]).toEqual([false, false]);
    },
  );

  it('classifies known codes as before', () => {
    expect(isTransient(new UnavailableError('The database cannot be reached'))).toBe(true);
  });
});
