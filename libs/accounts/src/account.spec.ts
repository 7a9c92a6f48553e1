import { describe, it } from '@jest/globals';
import { given } from '../../../test/support/given.js';
import { account, createAccount } from './account.js';

const attributes = {
  name: 'Corner Café',
  storeName: null,
  personal: false,
  timeZone: 'Europe/Berlin',
  locale: 'de',
};

describe('account', () => {
  it('is created with a trimmed name', () => {
    given(account)
      .when(() => createAccount(4, { ...attributes, name: ' Corner Café ' }))
      .then({ type: 'AccountCreated', data: { id: 4, ...attributes } });
  });

  it('is its own tenant', () => {
    given(account)
      .when(() => createAccount(4, attributes))
      .thenState({ id: 4, accountId: 4 });
  });

  it('refuses a blank name and an unknown time zone', () => {
    given(account)
      .when(() => createAccount(4, { ...attributes, name: '  ' }))
      .thenRejected({ fields: ['name'] });
    given(account)
      .when(() => createAccount(4, { ...attributes, timeZone: 'Mars/Olympus' }))
      .thenRejected({ fields: ['time_zone'] });
  });
});
