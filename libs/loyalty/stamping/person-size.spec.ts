import { describe, expect, it } from '@jest/globals';
import { RejectedError } from '#platform/kernel/errors.js';
import { assertPersonSize, type PersonSize } from './person-size.js';

function findError(size: Omit<PersonSize, 'merges'>): [string, string[] | undefined] | undefined {
  try {
    assertPersonSize(size);
    return undefined;
  } catch (error) {
    if (!(error instanceof RejectedError)) throw error;
    return [error.code, error.errors['base']];
  }
}

describe('assertPersonSize', () => {
  it('allows a person of 100 customers with 1,000 cards', () => {
    expect(findError({ customers: 100, cards: 1_000 })).toBeUndefined();
  });

  it('refuses a customer more, and a card more', () => {
    expect(findError({ customers: 101, cards: 1 })).toEqual([
      'limit_reached',
      ['They would be one person of more than 100 customers'],
    ]);
    expect(findError({ customers: 2, cards: 1_001 })).toEqual([
      'limit_reached',
      ['One person would have more than 1000 cards'],
    ]);
  });
});
