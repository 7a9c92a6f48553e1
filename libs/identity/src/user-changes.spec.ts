import { describe, expect, it } from '@jest/globals';
import { findUserChanges } from './user-changes.js';

describe('findUserChanges', () => {
  it('shows names from and to', () => {
    const email = 'ada@shop.example';
    expect(findUserChanges({ name: 'Ada', email }, { name: 'Ada King', email })).toEqual({
      name: { from: 'Ada', to: 'Ada King' },
    });
  });

  it('shows of addresses the first character and the domain', () => {
    expect(findUserChanges({ email: 'ada@shop.example' }, { email: 'eve@evil.example' })).toEqual({
      email: { from: 'a…@shop.example', to: 'e…@evil.example' },
    });
  });

  it('shows that an address changed when its parts that are shown did not', () => {
    expect(findUserChanges({ email: 'ada@shop.example' }, { email: 'alan@shop.example' })).toEqual({
      email: { from: 'a…@shop.example', to: 'a…@shop.example' },
    });
  });

  it('shows nothing where nothing changed', () => {
    const user = { name: 'Ada', email: 'ada@shop.example' };
    expect(findUserChanges(user, { ...user })).toEqual({});
  });
});
