import { describe, expect, it } from '@jest/globals';
import { NotFoundError, RejectedError, TakenError } from '#kernel/errors.js';
import { getTranslations } from '#translations/translations.js';
import { toPageErrors } from './page-errors.js';

const { errors: t } = getTranslations('en').t.customerPages;

describe('the errors of a form about a customer', () => {
  it.each([
    [{ first_name: ['must not be blank'] }, { first_name: [t.required] }],
    [{ first_name: ['must have at most 255 characters'] }, { first_name: [t.tooLong('255')] }],
    [{ email: ['must be an e-mail address'] }, { email: [t.email] }],
    [{ phone: ['must be a phone number'] }, { phone: [t.phone] }],
    [{ birthday: ['must not be in the future'] }, { birthday: [t.birthday] }],
    [{ card_id: ['is a card that the customer already has'] }, { card_id: [t.hasCard] }],
    [{ stamps: ['must be between -1000 and 1000'] }, { stamps: [t.stamps] }],
    [{ metadata: ['is too large'] }, { metadata: [t.refused('is too large')] }],
  ])('of fields are in the language of the page: %j', (errors, fields) => {
    expect(toPageErrors(new RejectedError(errors), t)).toEqual({ fields, text: t.check });
  });

  it.each([
    [new RejectedError({ base: ['This takes 3'] }, 'insufficient_stamps'), t.insufficient],
    [new RejectedError({ base: ['This event was already reversed'] }), t.reversed],
    [new RejectedError({ base: ['This event is itself a reversal'] }), t.notReversible],
    [new RejectedError({ base: ['An e-mail address or a phone number is needed'] }), t.contact],
    [new RejectedError({ base: ['Something new'] }), t.refused('Something new')],
  ])('of the whole form are too: %s', (error, text) => {
    expect(toPageErrors(error, t)).toEqual({ fields: {}, text });
  });

  it('name a value that somebody else has', () => {
    const error = new TakenError({ email: ['is already used by another customer'] }, '', undefined);
    expect(toPageErrors(error, t).fields).toEqual({ email: [t.taken] });
  });

  it('leave other errors to the error page', () => {
    const error = new NotFoundError('Customer');
    expect(() => toPageErrors(error, t)).toThrow(error);
  });
});
