import { describe, expect, it } from '@jest/globals';
import { findUserChanges } from './user-changes.js';

describe('findUserChanges', () => {
  it('returns a name before and after the change', () => {
    const email = 'ada@shop.example';
    expect(findUserChanges({ name: 'Ada', email }, { name: 'Ada King', email })).toEqual({
      name: { from: 'Ada', to: 'Ada King' },
    });
  });

  it('masks an e-mail address except its first character and domain', () => {
    expect(findUserChanges({ email: 'ada@shop.example' }, { email: 'eve@evil.example' })).toEqual({
      email: { from: 'a…@shop.example', to: 'e…@evil.example' },
    });
  });

  it('reports a changed e-mail address even when its masked form is the same', () => {
    expect(findUserChanges({ email: 'ada@shop.example' }, { email: 'alan@shop.example' })).toEqual({
      email: { from: 'a…@shop.example', to: 'a…@shop.example' },
    });
  });

  it('returns nothing when nothing changed', () => {
    const user = { name: 'Ada', email: 'ada@shop.example' };
    expect(findUserChanges(user, { ...user })).toEqual({});
  });
});
