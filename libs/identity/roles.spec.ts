import { describe, expect, it } from '@jest/globals';
import {
  isAllowed,
  limitRole,
  OPERATIONS,
  findDenial,
  findRequiredRoles,
  ROLES,
  type Role,
} from './roles.js';

describe('roles', () => {
  it('let owners do everything, and managers all that staff may do and more', () => {
    const listAllowed = (role: Role) =>
      OPERATIONS.filter((operation) => isAllowed(role, operation));
    expect(listAllowed('owner')).toEqual(OPERATIONS);
    expect(listAllowed('manager')).toEqual(expect.arrayContaining(listAllowed('staff')));
    expect(listAllowed('staff').length).toBeLessThan(listAllowed('manager').length);
  });

  it('let staff serve customers, but not manage them or the store', () => {
    const counter = ['listCustomers', 'createCustomer', 'enrolCustomer', 'stampCustomerCard'];
    for (const operation of [...counter, 'redeemReward']) {
      expect([operation, findDenial('staff', operation)]).toEqual([operation, null]);
    }
    const rest = ['exportCustomer', 'eraseCustomer', 'createWebhookSubscription', 'listHistory'];
    for (const operation of [...rest, 'tokens.create', 'store.settings', 'users.invite']) {
      expect([operation, findDenial('staff', operation)]).toEqual([operation, 'forbidden']);
    }
  });

  it('reserve operations that the table does not list to owners', () => {
    for (const operation of ['sellStore', 'toString', '__proto__', undefined]) {
      expect(findDenial('owner', operation)).toBeNull();
      expect(findDenial('manager', operation)).toBe('forbidden');
      expect(findDenial('staff', operation)).toBe('forbidden');
    }
  });

  it('hide the store from users who are not members', () => {
    for (const operation of OPERATIONS) expect(findDenial(null, operation)).toBe('not_found');
  });

  it('are limited to a maximum, which raises none', () => {
    const limited = ROLES.map((max) => ROLES.map((role) => limitRole(role, max)));
    expect(limited).toEqual([
      ['owner', 'manager', 'staff'],
      ['manager', 'manager', 'staff'],
      ['staff', 'staff', 'staff'],
    ]);
    expect(ROLES.map((role) => limitRole(role, null))).toEqual(ROLES);
  });

  it('are listed for operations that not every role may call', () => {
    expect(findRequiredRoles('listCards')).toBeNull();
    expect(findRequiredRoles('createCard')).toEqual(['owner', 'manager']);
    expect(findRequiredRoles('listAudit')).toEqual(['owner']);
  });
});
