import { describe, expect, it } from '@jest/globals';
import { judgeSmsNumber } from './sms-destination.js';

const judge = (phone: string, ...countries: string[]) => {
  const destination = judgeSmsNumber(phone, countries);
  return destination.kind === 'foreign' ? destination.country : destination.kind;
};

describe('judgeSmsNumber, for the countries of a store', () => {
  it.each([
    ['DE', '+4915112345678', 'mobile'],
    ['DE', '+4930123456', 'landline'],
    ['DE', '+4932221234567', 'voice over IP'],
    ['GB', '+447400123456', 'mobile'],
    ['FR', '+33612345601', 'mobile'],
    ['US', '+12125550123', 'New York'],
    ['CA', '+14165551234', 'Toronto'],
    ['JM', '+18762101234', 'Jamaica'],
    ['DO', '+18095551234', 'Dominican Republic'],
    ['KZ', '+77011234567', 'Kazakhstan'],
    ['RU', '+79161234567', 'Russia'],
    ['JE', '+447797712345', 'Jersey'],
    ['IM', '+447624123456', 'Isle of Man, in a range where Britain has pagers'],
    ['IT', '+390612345678', 'Rome'],
    ['VA', '+393123456789', 'Vatican, whose mobiles are Italian'],
    ['GP', '+590690001234', 'Guadeloupe'],
    ['MF', '+590690001234', 'Saint Martin, with the same numbers as Guadeloupe'],
    ['CX', '+61412345678', 'Christmas Island, with the same mobiles as Australia'],
    ['CW', '+59995181234', 'Curaçao'],
    ['SO', '+252612345678', 'Somalia'],
  ])('allows with %s the number %s: %s', (country, phone) => {
    expect(judge(phone, country)).toBe('allowed');
    expect(judge(phone, 'AR', country)).toBe('allowed');
  });
});

describe('judgeSmsNumber, for other countries', () => {
  it.each([
    ['US', '+18762101234', 'JM'],
    ['US', '+18765551234', 'JM'],
    ['US', '+18095551234', 'DO'],
    ['US', '+14165551234', 'CA'],
    ['US', '+12423591234', 'BS'],
    ['CA', '+12125550123', 'US'],
    ['JM', '+12125550123', 'US'],
    ['RU', '+77011234567', 'KZ'],
    ['KZ', '+79161234567', 'RU'],
    ['GB', '+447797712345', 'JE'],
    ['GB', '+441534123456', 'JE'],
    ['GB', '+447624123456', 'IM'],
    ['JE', '+447400123456', 'GB'],
    ['IT', '+3906698123', 'VA'],
    ['FI', '+35818123456', 'AX'],
    ['RE', '+590690001234', 'GP'],
    ['DE', '+436641234567', 'AT'],
    ['DE', '+252612345678', 'SO'],
    ['DE', '+15005550100', 'unsuitable'],
    ['AQ', '+4915112345678', 'DE'],
    ['', '+4915112345678', 'DE'],
    ['Germany', '+4915112345678', 'DE'],
  ])('judges with %s the number %s as %s', (country, phone, kind) =>
    expect(judge(phone, country)).toBe(kind),
  );

  it('allows no number without countries', () => {
    expect(judge('+4915112345678')).toBe('DE');
    expect(judge('+8816412345678')).toBe('unsuitable');
  });
});

describe('judgeSmsNumber, whatever the countries', () => {
  const everywhere = ['DE', 'GB', 'US', 'CA', 'JM', 'AT', 'FR', 'SO', 'ES', 'IT', 'CH', 'RU', 'KZ'];
  it.each([
    ['+870773111632', 'Inmarsat'],
    ['+8705123456', 'Inmarsat'],
    ['+8788123456789', 'universal personal numbers'],
    ['+8812345678', 'satellites'],
    ['+8816412345678', 'Iridium'],
    ['+8818612345678', 'Globalstar'],
    ['+882101234567', 'international networks'],
    ['+88213123456', 'international networks'],
    ['+88216123456789', 'Thuraya'],
    ['+883510012345', 'international networks'],
    ['+8835100012345678', 'international networks'],
    ['+8881234567', 'the United Nations'],
    ['+979123456789', 'international premium'],
    ['+9791234567', 'international premium'],
    ['+991123456789', 'a trial of ITU'],
    ['+80012345678', 'international freephone'],
    ['+80812345678', 'international shared cost'],
    ['+49900123456', 'premium'],
    ['+499001234567', 'premium'],
    ['+4918055555', 'shared cost'],
    ['+498001234567', 'freephone'],
    ['+4970012345678', 'personal'],
    ['+4916912345678', 'pagers'],
    ['+491511234567', 'a number that is too short'],
    ['+4919112345', 'nobody'],
    ['+447012345678', 'personal'],
    ['+447612345678', 'pagers'],
    ['+448451234567', 'shared cost'],
    ['+448001234567', 'freephone'],
    ['+449011234567', 'premium'],
    ['+19005551234', 'premium'],
    ['+18005551234', 'freephone'],
    ['+15005550006', 'personal'],
    ['+17005551234', 'carriers'],
    ['+19765551234', 'nobody'],
    ['+15551234567', 'nobody'],
    ['+33892123456', 'premium'],
    ['+33810123456', 'shared cost'],
    ['+34803123456', 'premium'],
    ['+43820123456', 'shared cost'],
    ['+43900123456', 'premium'],
    ['+39899123456', 'premium'],
    ['+41900123456', 'premium'],
    ['+41840123456', 'shared cost'],
    ['+78031234567', 'premium'],
    ['+77', 'nothing that is a number'],
    ['+', 'nothing that is a number'],
    ['015112345678', 'a number of an unknown country'],
    ['', 'nothing that is a number'],
  ])('finds %s unsuitable: %s', (phone) => expect(judge(phone, ...everywhere)).toBe('unsuitable'));
});
