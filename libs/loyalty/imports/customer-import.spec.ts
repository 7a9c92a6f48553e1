import { describe, expect, it } from '@jest/globals';
import { RejectedError } from '#platform/kernel/errors.js';
import {
  startImport,
  undoImport,
  type CustomerImport,
  type StoredState,
} from './customer-import.js';

const inState = (state: StoredState, fields: Partial<CustomerImport> = {}) =>
  ({ state, startedAt: null, rowsDeletedAt: null, ...fields }) as CustomerImport;

describe('startImport', () => {
  it('starts what is ready, once', () => {
    expect(startImport(inState('ready'))).toBe(true);
    expect([inState('running'), inState('done')].map(startImport)).toEqual([false, false]);
  });

  it.each(['checking', 'failed', 'undoing', 'undone'] as const)(
    'refuses one that is %s',
    (state) => {
      expect(() => startImport(inState(state))).toThrow(RejectedError);
    },
  );
});

describe('undoImport', () => {
  it('undoes what is done, or failed after its start, once', () => {
    expect(undoImport(inState('done'))).toBe(true);
    expect(undoImport(inState('failed', { startedAt: new Date(0) }))).toBe(true);
    expect([inState('undoing'), inState('undone')].map(undoImport)).toEqual([false, false]);
  });

  it.each(['checking', 'ready', 'running', 'failed'] as const)(
    'refuses one that is %s',
    (state) => {
      expect(() => undoImport(inState(state))).toThrow(RejectedError);
    },
  );

  it('refuses one whose rows were deleted', () => {
    expect(() => undoImport(inState('done', { rowsDeletedAt: new Date(0) }))).toThrow(
      'The rows of the import were deleted',
    );
  });
});
