import { describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { QueryFailedError } from 'typeorm';
import { UnavailableError } from '#platform/kernel/errors.js';
import { isConnectionLoss, isDatabaseUnavailable, isOutage, isTransient } from './connection.js';
import { findMissingResource } from './sqlstate.js';

function createDatabaseError(code: string): pg.DatabaseError {
  const error = new pg.DatabaseError('refused', 0, 'error');
  error.code = code;
  return error;
}

describe('SQLSTATE', () => {
  it.each(['53000', '53100', '53200', '53300', '53400', '25006', '58000', '58030', '58P01'])(
    '%s is an outage, from pg and from TypeORM',
    (code) => {
      for (const error of [
        createDatabaseError(code),
        new QueryFailedError('', [], createDatabaseError(code)),
      ]) {
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
    '%s is the loss of a connection, not an outage',
    (code) => {
      expect([
        isConnectionLoss(createDatabaseError(code)),
        isOutage(createDatabaseError(code)),
      ]).toEqual([true, false]);
    },
  );

  it.each(['23505', '42P01', '42501', '22021', '25001', 'XX000', 'IP001'])(
    '%s is neither transient nor an outage',
    (code) => {
      expect([isTransient(createDatabaseError(code)), isOutage(createDatabaseError(code))]).toEqual(
        [false, false],
      );
    },
  );
});

describe('findMissingResource', () => {
  it.each([
    ['25006', 'write_access'],
    ['53100', 'disk_space'],
    ['53200', 'memory'],
    ['53300', 'connections'],
    ['53400', 'resources'],
    ['58030', 'system'],
    ['23505', undefined],
    [undefined, undefined],
  ])('%s is %s', (code, lack) => {
    expect(findMissingResource(code)).toBe(lack);
  });
});

describe('isTransient', () => {
  it('accepts an UnavailableError', () => {
    expect(isTransient(new UnavailableError('The database cannot be reached'))).toBe(true);
  });
});
