import { describe, expect, it } from '@jest/globals';
import { EARLIEST_TIME, LATEST_TIME } from '#platform/kernel/zoned-time.js';
import type { PassContent } from '#outbound/passes/pass-content.js';
import { renderApplePass, type LastChange } from './apple-pass.js';
import { findPassErrors, type PassJson } from './pass-json.js';

const content: PassContent = {
  customerCardId: 7,
  customerId: 31,
  accountId: 1,
  cardId: 3,
  uuid: '0b0f6c9e-6f3e-4d2e-9a52-5d9f0f8c2c11',
  code: 'K7Q2M9XA',
  state: 'valid',
  storeName: 'Corner Café',
  logo: null,
  contact: { website: null, phone: null, email: null, address: null, termsText: null },
  locale: 'en',
  addressForm: null,
  logoContainsName: false,
  timeZone: 'Europe/Berlin',
  card: {
    name: 'Coffee card',
    cardColor: '#6B4226',
    textColor: '#FFF',
    stampIcon: 'coffee',
    stampColor: '#6B4226',
    stampBackgroundColor: '#FFFFFF',
    stampsRequired: 10,
    showMemberField: true,
    showStampsToRewardField: true,
    auxiliaryFields: [
      { key: 'aux_1', label: 'Tier', value: 'Gold' },
      { key: 'aux_2', label: null, value: 'Since 2019' },
    ],
    stripType: 'color',
    stripColor: null,
    stripOpacity: 100,
    stripPreset: null,
    stripPicture: null,
    headerText: 'Mon–Fri',
    expiresAt: '2027-07-31T21:59:59.000Z',
    barcodeFormat: 'qr',
  },
  messages: { stampMessage: null, rewardMessage: null, redemptionMessage: null },
  memberName: 'Ada Lovelace',
  stampsCount: 3,
  rewards: [
    { id: 1, name: 'Free coffee', description: 'Any size', stampsRequired: 2, available: true },
    { id: 2, name: 'Cake', description: null, stampsRequired: 10, available: false },
  ],
  offers: [
    { id: 1, name: 'Free coffee', description: 'Any size', stampsRequired: 2 },
    { id: 2, name: 'Cake', description: null, stampsRequired: 10 },
  ],
  stampsToReward: 7,
  expiresAt: '2027-07-31T21:59:59.000Z',
  locations: [{ name: 'Market square', latitude: 52.5, longitude: 13.4 }],
};
const silentChange: LastChange = { notification: null, balanceTag: 0, notificationTag: 0 };
const issuer = {
  publicUrl: 'https://cards.example',
  logoWidth: null,
  passTypeId: 'pass.example.inkpad',
  teamId: 'A1B2C3D4E5',
  webServiceUrl: 'https://cards.example/wallet/apple',
  token: 'x'.repeat(43),
};
const NOW = new Date('2026-11-01T12:00:00Z');
const render = (
  changes: Partial<PassContent> = {},
  lastChange: LastChange = silentChange,
  now = NOW,
) => renderApplePass({ ...content, ...changes }, lastChange, issuer, now);
const findBackField = ({ storeCard }: PassJson, key: string) =>
  storeCard.backFields.find((field) => field.key === key);

describe('renderApplePass', () => {
  it('renders the card, its rewards, its locations and its expiry', () => {
    const pass = render();
    expect(findPassErrors(pass)).toEqual([]);
    expect(pass).toMatchObject({
      serialNumber: content.uuid,
      logoText: 'Corner Café',
      backgroundColor: 'rgb(107, 66, 38)',
      foregroundColor: 'rgb(255, 255, 255)',
      barcodes: [{ message: 'K7Q2M9XA' }],
      locations: [{ latitude: 52.5, longitude: 13.4, relevantText: 'Market square' }],
      expirationDate: '2027-07-31T23:59:59+02:00',
      sharingProhibited: true,
      storeCard: {
        headerFields: [
          { key: 'header', value: 'Mon–Fri' },
          { key: 'stamps', label: 'Coffee card', value: '3/10' },
        ],
        primaryFields: [],
        secondaryFields: [{ key: 'to_reward', label: 'To go', value: 7 }],
        auxiliaryFields: [
          { key: 'aux_1', label: 'Tier', value: 'Gold' },
          { key: 'aux_2', value: 'Since 2019' },
        ],
      },
    });
    expect(pass.voided).toBeUndefined();
    // Four fields have columns of 78 points, which is too narrow for the name.
    expect(findBackField(pass, 'member')).toMatchObject({ value: 'Ada Lovelace' });
    expect(findBackField(pass, 'page')).toEqual({
      key: 'page',
      label: 'Card in the browser',
      value: `https://cards.example/passes/${content.uuid}`,
      attributedValue: `<a href="https://cards.example/passes/${content.uuid}">Open the card in the browser</a>`,
    });
    expect(findBackField(pass, 'expires')).toMatchObject({
      value: '2027-07-31T23:59:59+02:00',
      ignoresTimeZone: true,
    });
    expect(findBackField(pass, 'rewards')?.value).toBe(
      'Free coffee: 2 stamps (ready for you)\nAny size\n\nCake: 10 stamps',
    );
  });

  it('shows the card’s name beside a logo, and the contact details on the back', () => {
    const contact = {
      website: 'https://cafe.example/',
      phone: null,
      email: 'hello@cafe.example',
      address: 'Main Street 1\nKarlsruhe',
      termsText: 'One stamp a day.',
    };
    const logo = 'a'.repeat(64);
    const card = { ...content.card, headerText: null };
    const renderWithLogo = (logoWidth: number) =>
      renderApplePass({ ...content, logo, logoContainsName: true, contact, card }, silentChange, { ...issuer, logoWidth }, NOW); // prettier-ignore
    const pass = renderWithLogo(50);
    expect(findPassErrors(pass)).toEqual([]);
    expect(pass.logoText).toBe('Coffee card');
    // At the top, so that the row has room for the name.
    const toReward = { key: 'to_reward', label: 'To go', value: 7 };
    expect(pass.storeCard.headerFields).toEqual([
      toReward,
      { key: 'stamps', label: 'Stamps', value: '3/10' },
    ]);
    const withWideLogo = renderWithLogo(160);
    expect(findPassErrors(withWideLogo)).toEqual([]);
    expect(withWideLogo).not.toHaveProperty('logoText');
    expect(withWideLogo.storeCard.headerFields).toEqual([
      toReward,
      { key: 'stamps', label: 'Coffee card', value: '3/10' },
    ]);
    expect(pass.storeCard.backFields.slice(-4)).toEqual([
      { key: 'website', label: 'Website', value: 'https://cafe.example/' },
      { key: 'email', label: 'E-mail', value: 'hello@cafe.example' },
      { key: 'address', label: 'Address', value: 'Main Street 1\nKarlsruhe' },
      { key: 'terms', label: 'Terms', value: 'One stamp a day.' },
    ]);
  });

  it('leaves out fields that the card has no value for', () => {
    const pass = render({
      memberName: null,
      stampsToReward: null,
      expiresAt: null,
      rewards: [],
      locations: [],
      card: { ...content.card, headerText: null, auxiliaryFields: [] },
    });
    expect(findPassErrors(pass)).toEqual([]);
    expect(pass.storeCard).toMatchObject({
      headerFields: [{ key: 'stamps' }],
      secondaryFields: [],
      auxiliaryFields: [],
    });
    expect(pass.storeCard.backFields.map(({ key }) => key)).toEqual(['news', 'page']);
    expect(pass).not.toHaveProperty('expirationDate');
    expect(pass).not.toHaveProperty('locations');
  });

  it('voids the pass of an invalid card, without locations and without a change message', () => {
    const lastChange: LastChange = {
      notification: { text: '7 more stamps.', hasCount: true },
      balanceTag: 4,
      notificationTag: 4,
    };
    const pass = render({ state: 'void', memberName: null }, lastChange);
    expect(findPassErrors(pass)).toEqual([]);
    expect(pass.voided).toBe(true);
    expect(pass).not.toHaveProperty('locations');
    expect(findBackField(pass, 'news')).toEqual({
      key: 'news',
      label: 'Latest news',
      value: 'This card is no longer valid.',
    });
  });

  it('voids the pass from the moment the card expires, and keeps its header and news', () => {
    const { expiresAt } = content;
    const end = Date.parse(expiresAt ?? '');
    const before = render({}, silentChange, new Date(end - 1));
    const after = render({}, silentChange, new Date(end));
    expect(before.voided).toBeUndefined();
    expect(after.voided).toBe(true);
    expect(after).not.toHaveProperty('locations');
    expect(findPassErrors(after)).toEqual([]);
    expect(after.storeCard.headerFields).toEqual(before.storeCard.headerFields);
    expect(findBackField(after, 'news')).toEqual(findBackField(before, 'news'));
  });

  it.each<[string, LastChange['notification'], string]>([
    ['what has a number', { text: '7 more to cake', hasCount: true }, '7 more to cake'],
    [
      'a sentence, with the balance, so that the next one differs',
      { text: 'Your cake is ready.', hasCount: false },
      'Your cake is ready. You have 3 stamps.',
    ],
    [
      'other words, with the balance below',
      { text: 'Thanks 💛', hasCount: false },
      'Thanks 💛\nYou have 3 stamps.',
    ],
    [
      'the balance, when stamps were removed',
      { text: null, hasCount: false },
      'You have 3 stamps.',
    ],
  ])('announces %s', (_, notification, value) => {
    const pass = render({}, { notification, balanceTag: 9, notificationTag: 9 });
    expect(findPassErrors(pass)).toEqual([]);
    expect(findBackField(pass, 'news')).toMatchObject({ value, changeMessage: '%@' });
  });

  it('announces nothing once the balance has changed silently', () => {
    const notification = { text: 'Your cake is ready.', hasCount: false };
    const pass = render({}, { notification, balanceTag: 9, notificationTag: 8 });
    expect(findBackField(pass, 'news')).toEqual({
      key: 'news',
      label: 'Latest news',
      value: 'You have 3 stamps.',
    });
  });

  it('keeps the news unchanged when anything but the balance changes', () => {
    const lastChange: LastChange = {
      notification: { text: '7 more stamps.', hasCount: true },
      balanceTag: 4,
      notificationTag: 4,
    };
    const before = findBackField(render({}, lastChange), 'news');
    const after = render(
      {
        storeName: 'Other',
        rewards: [],
        stampsToReward: 9,
        card: { ...content.card, name: 'Tea card', stampsRequired: 12, headerText: 'New' },
      },
      lastChange,
    );
    expect(findBackField(after, 'news')).toEqual(before);
  });

  it.each([
    ['de-AT', 'Noch', 'Du hast 1.234 Stempel.'],
    ['fr', 'Encore', 'Vous avez 1 234 tampons.'],
    ['es-MX', 'Faltan', 'Tiene 1,234 sellos.'],
    ['pt-BR', 'To go', 'You have 1,234 stamps.'],
  ])('uses the language of the store: %s', (locale, label, news) => {
    const pass = render({ locale, stampsCount: 1234 });
    expect(findPassErrors(pass)).toEqual([]);
    expect(pass.storeCard.secondaryFields.at(-1)?.label).toBe(label);
    expect(String(findBackField(pass, 'news')?.value).replace(/[\u202f\u00a0]/g, ' ')).toBe(
      locale === 'de-AT' ? 'Du hast 1 234 Stempel.' : news,
    );
  });

  it.each([
    ['qr', ['PKBarcodeFormatQR']],
    ['aztec', ['PKBarcodeFormatAztec']],
    ['pdf417', ['PKBarcodeFormatPDF417']],
    ['code128', ['PKBarcodeFormatCode128', 'PKBarcodeFormatQR']],
  ] as const)('has a barcode of the format %s', (barcodeFormat, formats) => {
    const pass = render({ card: { ...content.card, barcodeFormat } });
    expect(findPassErrors(pass)).toEqual([]);
    expect(pass.barcodes.map(({ format }) => format)).toEqual(formats);
  });

  it('shows twenty rewards at most, with the beginning of what they are', () => {
    const rewards = Array.from({ length: 50 }, (_, id) => ({
      id,
      name: 'n'.repeat(255),
      description: 'd'.repeat(2000),
      stampsRequired: 2,
      available: true,
    }));
    const pass = render({ rewards });
    expect(String(findBackField(pass, 'rewards')?.value)).toMatch(
      /…\n\nAnd 30 more rewards on the card’s page\.$/,
    );
    expect(JSON.stringify(pass).length).toBeLessThan(16 * 1024);
  });

  it('renders the expiry in the time zone of the store', () => {
    const renderEnd = (expiresAt: string, timeZone: string) =>
      render({ expiresAt, timeZone }).expirationDate;
    expect(renderEnd('2027-01-31T22:59:59.000Z', 'Europe/Berlin')).toBe(
      '2027-01-31T23:59:59+01:00',
    );
    expect(renderEnd('2027-01-31T10:00:00.000Z', 'UTC')).toBe('2027-01-31T10:00:00+00:00');
    expect(renderEnd('2027-01-31T10:00:00.000Z', 'Pacific/Kiritimati')).toBe('2027-02-01T00:00:00+14:00'); // prettier-ignore
    expect(renderEnd('2027-01-31T10:00:00.000Z', 'America/St_Johns')).toBe(
      '2027-01-31T06:30:00-03:30',
    );
  });

  it('renders a valid pass for the earliest and the latest expiry in every time zone', () => {
    for (const expiresAt of [EARLIEST_TIME, LATEST_TIME, Date.parse('1800-01-01T12:00:00Z')]) {
      for (const timeZone of [...Intl.supportedValuesOf('timeZone'), 'Etc/GMT-14']) {
        const pass = render({ expiresAt: new Date(expiresAt).toISOString(), timeZone });
        expect(findPassErrors(pass)).toEqual([]);
      }
    }
  });
});

describe('findPassErrors', () => {
  const card = render().storeCard;
  const field = { key: 'x', value: 'y' };
  const code128 = {
    format: 'PKBarcodeFormatCode128',
    messageEncoding: 'iso-8859-1',
    altText: 'code',
  };
  it.each<[string, object, RegExp]>([
    ['an unknown key', { colour: 'red' }, /^colour: is unknown/],
    ['a deprecated key', { suppressStripShine: true }, /^suppressStripShine: is unknown/],
    ['a missing key', { description: undefined }, /^description: is missing/],
    ['a colour in hex', { labelColor: '#ffffff' }, /^labelColor: must be rgb/],
    ['a colour out of range', { labelColor: 'rgb(0, 0, 256)' }, /^labelColor/],
    ['a web service without TLS', { webServiceURL: 'http://a.example' }, /^webServiceURL/],
    ['a short token', { authenticationToken: 'x'.repeat(15) }, /^authenticationToken/],
    ['a time without its offset', { expirationDate: '2027-01-31T10:00:00' }, /^expirationDate/],
    [
      'eleven locations',
      {
        locations: Array.from({ length: 11 }, () => ({
          latitude: 1,
          longitude: 1,
          relevantText: 'x',
        })),
      },
      /^locations: 11/,
    ],
    [
      'a latitude above 90',
      { locations: [{ latitude: 91, longitude: 1, relevantText: 'x' }] },
      /^locations\[0\].latitude/,
    ],
    ['an unknown barcode format', { barcodes: [{ format: 'QR' }] }, /^barcodes\[0\].format/],
    [
      'a code that a barcode of the format cannot hold',
      { barcodes: [{ ...code128, message: 'Ä' }] },
      /^barcodes\[0\].message: must be printable ASCII/,
    ],
    [
      'a code that is too long for scanners',
      { barcodes: [{ ...code128, message: 'A'.repeat(21) }] },
      /^barcodes\[0\].message: must have at most 20/,
    ],
    [
      'markup that is no link',
      { storeCard: { ...card, backFields: [{ ...field, attributedValue: '<b>y</b>' }] } },
      /attributedValue: must be a link/,
    ],
    [
      'a change message without its value',
      { storeCard: { ...card, backFields: [{ ...field, changeMessage: 'New' }] } },
      /changeMessage: must contain %@/,
    ],
    [
      'two fields with change messages',
      {
        storeCard: {
          ...card,
          backFields: ['a', 'b'].map((key) => ({ key, value: 1, changeMessage: '%@' })),
        },
      },
      /changeMessage on more than one/,
    ],
    [
      'two fields with one key',
      { storeCard: { ...card, backFields: [field, field] } },
      /two fields have the key x/,
    ],
    [
      'an unknown key of a field',
      { storeCard: { ...card, backFields: [{ ...field, size: 3 }] } },
      /backFields\[0\].size: is unknown/,
    ],
    [
      'a primary field',
      { storeCard: { ...card, primaryFields: [field] } },
      /primaryFields: must be empty/,
    ],
    [
      'more secondary fields than fit',
      {
        storeCard: { ...card, secondaryFields: ['a', 'b', 'c'].map((key) => ({ key, value: 1 })) },
      },
      /more than 4 secondary/,
    ],
    [
      'more header fields than fit',
      {
        storeCard: { ...card, headerFields: [1, 2, 3, 4].map((n) => ({ key: `h${n}`, value: n })) },
      },
      /headerFields: more than 3/,
    ],
  ])('reports %s', (_, changes, pattern) => {
    const errors = findPassErrors({ ...render(), ...changes });
    expect(errors.length).toBeGreaterThan(0);
    expect(errors.join('\n')).toMatch(pattern);
  });

  it('reports a value that is not a pass', () => {
    expect(findPassErrors(null)).toEqual(['pass: must be an object']);
    expect(findPassErrors({ ...render(), storeCard: [] })).toEqual([
      'storeCard: must be an object',
    ]);
  });
});
