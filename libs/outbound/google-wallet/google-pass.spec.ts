import { describe, expect, it } from '@jest/globals';
import type { PassContent } from '#outbound/passes/pass-content.js';
import type { NotificationText, WrittenNotification } from '#outbound/passes/pass-notification.js';
import {
  toClassId,
  hashGoogleRecord,
  renderLoyaltyClass,
  renderLoyaltyObject,
  renderNotificationMessage,
  toObjectId,
  parseObjectId,
  withoutNulls,
} from './google-pass.js';

const UUID = '0d9e3f6a-7b1c-4e8d-9a5f-2c6b8e1d4f70';
const INSTALLATION = { issuerId: '3388', idSuffix: 'test', publicUrl: 'https://cards.example' };
const LOGO = 'https://cards.example/img/logo/a.png';
const HERO = 'https://cards.example/img/strip/a/3@hero.png';
const NOW = new Date('2026-11-01T12:00:00Z');

const CONTENT = {
  customerCardId: 7,
  customerId: 31,
  accountId: 1,
  cardId: 5,
  uuid: UUID,
  code: 'ABCD2345',
  state: 'valid',
  storeName: 'Corner Café',
  logo: null,
  logoContainsName: false,
  contact: { website: null, phone: null, email: null, address: null, termsText: null },
  locale: 'en-GB',
  timeZone: 'Europe/Berlin',
  card: {
    name: 'Coffee',
    cardColor: '#6B4226',
    stampsRequired: 10,
    barcodeFormat: 'qr',
    headerText: 'Thanks!',
    auxiliaryFields: [{ key: 'aux_1', label: 'Wifi', value: 'latte' }],
  },
  memberName: 'Anna Berg',
  stampsCount: 3,
  rewards: [
    { id: 1, name: 'Cookie', description: null, stampsRequired: 3, available: true },
    { id: 2, name: 'Free coffee', description: 'Any size', stampsRequired: 10, available: false },
  ],
  offers: [
    { id: 1, name: 'Cookie', description: null, stampsRequired: 3 },
    { id: 2, name: 'Free coffee', description: 'Any size', stampsRequired: 10 },
  ],
  stampsToReward: 7,
  expiresAt: '2027-01-31T22:59:59.000Z',
  locations: [
    { name: 'B', latitude: 52.5, longitude: 13.4 },
    { name: 'A', latitude: 48.1, longitude: 11.5 },
  ],
} as unknown as PassContent;

const many = (n: number) =>
  Array.from({ length: n }, (_, i) => ({ name: `${i}`, latitude: 50 - i, longitude: 8 }));

const toItem = (fieldPath: string) => ({ firstValue: { fields: [{ fieldPath }] } });

describe('the class of a card', () => {
  it("has the card's own texts on its front", () => {
    const render = (card: object) =>
      renderLoyaltyClass({ ...CONTENT, card: { ...CONTENT.card, ...card } }, INSTALLATION, LOGO);
    const listPaths = (card: object) =>
      JSON.stringify(render(card).classTemplateInfo).match(/(class|object)\.[^"]+/g) ?? [];
    const points = ['object.loyaltyPoints.balance', 'object.secondaryLoyaltyPoints.balance'];
    const auxiliaryFields = [
      { key: 'aux_1', label: 'Wifi', value: 'latte' },
      { key: 'aux_2', label: null, value: 'Mo–Sa' },
    ];
    const modules = ["class.textModulesData['aux_1']", "class.textModulesData['aux_2']"];
    expect(listPaths({ auxiliaryFields })).toEqual([
      "class.textModulesData['header']",
      ...points,
      ...modules,
    ]);
    expect(listPaths({ auxiliaryFields, headerText: null })).toEqual([...points, ...modules]);
    expect(listPaths({ auxiliaryFields: [] })).toEqual([
      "class.textModulesData['header']",
      ...points,
    ]);
    expect(render({ auxiliaryFields: [], headerText: null }).classTemplateInfo).toBeNull();
  });

  it('contains everything that is the same for all customers', () => {
    expect(renderLoyaltyClass(CONTENT, INSTALLATION, LOGO)).toEqual({
      id: '3388.card_5_test',
      issuerName: 'Corner Café',
      programName: 'Coffee',
      programLogo: {
        sourceUri: { uri: LOGO },
        contentDescription: { defaultValue: { language: 'en-GB', value: 'Corner Café' } },
      },
      reviewStatus: 'UNDER_REVIEW',
      hexBackgroundColor: '#6B4226',
      accountNameLabel: 'Member',
      accountIdLabel: 'Card code',
      textModulesData: [
        { id: 'header', header: 'Coffee', body: 'Thanks!' },
        { id: 'aux_1', header: 'Wifi', body: 'latte' },
        {
          id: 'rewards',
          header: 'Rewards',
          body: 'Cookie: 3 stamps\nFree coffee: 10 stamps\nAny size',
        },
      ],
      classTemplateInfo: {
        cardTemplateOverride: {
          cardRowTemplateInfos: [
            { oneItem: { item: toItem("class.textModulesData['header']") } },
            {
              twoItems: {
                startItem: toItem('object.loyaltyPoints.balance'),
                endItem: toItem('object.secondaryLoyaltyPoints.balance'),
              },
            },
            { oneItem: { item: toItem("class.textModulesData['aux_1']") } },
          ],
        },
      },
      linksModuleData: null,
      merchantLocations: [
        { latitude: 48.1, longitude: 11.5 },
        { latitude: 52.5, longitude: 13.4 },
      ],
      multipleDevicesAndHoldersAllowedStatus: 'ONE_USER_ALL_DEVICES',
      callbackOptions: { url: 'https://cards.example/wallet/google/callback' },
    });
  });

  it('has the contact details of the store, with links to call and write', () => {
    const contact = {
      website: 'https://cafe.example/',
      phone: '+49 (721) 12-34',
      email: 'hello@cafe.example',
      address: 'Main Street 1',
      termsText: 'One stamp a day.',
    };
    const { linksModuleData, textModulesData } = renderLoyaltyClass(
      { ...CONTENT, contact },
      INSTALLATION,
      LOGO,
    );
    expect(linksModuleData?.uris.map(({ uri }) => uri)).toEqual([
      'https://cafe.example/',
      'tel:+497211234',
      'mailto:hello@cafe.example',
    ]);
    expect(textModulesData.slice(-2)).toEqual([
      { id: 'address', header: 'Address', body: 'Main Street 1' },
      { id: 'terms', header: 'Terms', body: 'One stamp a day.' },
    ]);
  });

  it('does not depend on the customer that it is rendered from', () => {
    const otherContent: PassContent = {
      ...CONTENT,
      customerCardId: 8,
      uuid: 'other',
      code: 'ZZZZ9999',
      state: 'void',
      memberName: null,
      stampsCount: 11,
      stampsToReward: 0,
      rewards: CONTENT.rewards.map((reward) => ({
        ...reward,
        stampsRequired: 1,
        available: true,
      })),
      locations: [...CONTENT.locations].reverse(),
    };
    const [one, another] = [CONTENT, otherContent].map((each) =>
      renderLoyaltyClass(each, INSTALLATION, LOGO),
    );
    expect(another).toEqual(one);
    const tenOrMore = { ...CONTENT, locations: many(10) };
    expect(renderLoyaltyClass(tenOrMore, INSTALLATION, LOGO).merchantLocations).toEqual([]);
  });

  it('uses the language of the store', () => {
    const german = { ...CONTENT, locale: 'de-AT' };
    expect(renderLoyaltyClass(german, INSTALLATION, LOGO).accountNameLabel).toBe('Mitglied');
    expect(
      renderLoyaltyClass({ ...CONTENT, locale: 'sv' }, INSTALLATION, LOGO).accountNameLabel,
    ).toBe('Member');
  });
});

describe('the object of a customer card', () => {
  it('contains everything that differs between customers', () => {
    expect(renderLoyaltyObject(CONTENT, INSTALLATION, HERO, NOW)).toEqual({
      id: `3388.cc_${UUID}_test`,
      classId: '3388.card_5_test',
      state: 'ACTIVE',
      accountId: 'ABCD2345',
      accountName: 'Anna Berg',
      loyaltyPoints: { label: 'Stamps', balance: { string: '3 / 10' } },
      secondaryLoyaltyPoints: { label: 'To next reward', balance: { int: 7 } },
      barcode: { type: 'QR_CODE', value: 'ABCD2345', alternateText: 'ABCD2345' },
      heroImage: {
        sourceUri: { uri: HERO },
        contentDescription: { defaultValue: { language: 'en-GB', value: 'Stamps: 3 / 10' } },
      },
      textModulesData: [{ id: 'available', header: 'Ready for you', body: 'Cookie' }],
      linksModuleData: {
        uris: [
          {
            id: 'page',
            uri: `https://cards.example/passes/${UUID}`,
            description: 'Card in the browser',
          },
        ],
      },
      validTimeInterval: { end: { date: '2027-01-31T23:59:59+01:00' } },
      merchantLocations: [],
    });
  });

  it.each([
    ['aztec', 'AZTEC'],
    ['pdf417', 'PDF_417'],
    ['code128', 'CODE_128'],
  ] as const)('has a barcode of the format %s', (barcodeFormat, type) => {
    const content = { ...CONTENT, card: { ...CONTENT.card, barcodeFormat } };
    expect(renderLoyaltyObject(content, INSTALLATION, HERO, NOW).barcode?.type).toBe(type);
  });

  it('names the stamps of an available reward that needs fewer than the class says', () => {
    const [cookie, coffee] = CONTENT.rewards;
    const rewards = [{ ...coffee, stampsRequired: 2, available: true }, cookie];
    const content = { ...CONTENT, rewards } as PassContent;
    expect(renderLoyaltyObject(content, INSTALLATION, HERO, NOW).textModulesData).toEqual([
      { id: 'available', header: 'Ready for you', body: 'Free coffee: 2 stamps\nCookie' },
    ]);
  });

  it('has null for fields without a value, which withoutNulls removes', () => {
    const bare = { ...CONTENT, stampsToReward: null, memberName: null, expiresAt: null };
    const object = renderLoyaltyObject(bare, INSTALLATION, HERO, NOW);
    expect(object).toMatchObject({
      accountName: null,
      secondaryLoyaltyPoints: null,
      validTimeInterval: null,
    });
    expect(Object.values(withoutNulls(object))).not.toContain(null);
  });

  it('shows the member when there are no stamps to a next reward', () => {
    expect(
      renderLoyaltyObject({ ...CONTENT, stampsToReward: null }, INSTALLATION, HERO, NOW)
        .secondaryLoyaltyPoints,
    ).toEqual({ label: 'Member', balance: { string: 'Anna Berg' } });
  });

  it('contains locations only when there are ten or more', () => {
    const object = renderLoyaltyObject(
      { ...CONTENT, locations: many(10) },
      INSTALLATION,
      HERO,
      NOW,
    );
    expect(object.merchantLocations).toHaveLength(10);
    expect(
      renderLoyaltyObject({ ...CONTENT, locations: many(9) }, INSTALLATION, HERO, NOW)
        .merchantLocations,
    ).toEqual([]);
  });

  it('contains nothing personal once the card is void', () => {
    const object = renderLoyaltyObject({ ...CONTENT, state: 'void' }, INSTALLATION, HERO, NOW);
    expect(object.state).toBe('INACTIVE');
    expect(Object.keys(object).sort()).toEqual(
      [...Object.keys(renderLoyaltyObject(CONTENT, INSTALLATION, HERO, NOW)), 'messages'].sort(),
    );
    for (const own of ['Anna', 'ABCD2345', '3 / 10', 'Cookie', HERO]) {
      expect(JSON.stringify(object)).not.toContain(own);
    }
  });

  it('is expired from the end of its card, and active again when the end is removed', () => {
    const end = Date.parse(CONTENT.expiresAt ?? '');
    const stateAt = (at: number, content = CONTENT) =>
      renderLoyaltyObject(content, INSTALLATION, HERO, new Date(at)).state;
    expect([stateAt(end - 1), stateAt(end)]).toEqual(['ACTIVE', 'EXPIRED']);
    expect(stateAt(end, { ...CONTENT, expiresAt: null })).toBe('ACTIVE');
    expect(stateAt(end, { ...CONTENT, state: 'void' })).toBe('INACTIVE');
  });

  it('changes its hash exactly when something visible changes', () => {
    const hash = (content: PassContent) =>
      hashGoogleRecord(renderLoyaltyObject(content, INSTALLATION, HERO, NOW));
    expect(hash({ ...CONTENT })).toBe(hash(CONTENT));
    expect(hash({ ...CONTENT, stampsCount: 4 })).not.toBe(hash(CONTENT));
    expect(hash({ ...CONTENT, storeName: 'Tea House' })).toBe(hash(CONTENT));
  });
});

describe('the message of a notification', () => {
  const render = (
    kind: 'stamped' | 'unlocked' | 'redeemed',
    more: Partial<NotificationText> = {},
  ) => {
    const notification = { kind, stamps: 1, rewardName: 'Cookie', text: 'Yes', hasCount: false, isOwn: false }; // prettier-ignore
    return renderNotificationMessage(
      { ...notification, ...more } as WrittenNotification,
      9,
      CONTENT,
      NOW,
    );
  };

  it('is sent of an unlocked reward, and of what the store has words of its own for', () => {
    expect(render('unlocked')).toEqual({
      id: 'unlocked_9',
      header: 'Reward unlocked',
      body: 'Yes',
      displayInterval: { end: { date: '2026-11-02T12:00:00.000Z' } },
    });
    expect(render('stamped', { isOwn: true })).toMatchObject({ id: 'stamped_9', header: 'Coffee' });
    expect(render('redeemed', { isOwn: true })).toMatchObject({ id: 'redeemed_9', body: 'Yes' });
  });

  it('is not sent of a balance that Google itself notifies of', () => {
    expect(render('stamped')).toBeUndefined();
    expect(render('redeemed')).toBeUndefined();
    expect(render('stamped', { text: null, isOwn: true })).toBeUndefined();
  });
});

describe('the size of a pass', () => {
  it('is limited however many rewards a card has', () => {
    const rewards = Array.from({ length: 50 }, (_, id) => ({
      id,
      name: 'n'.repeat(255),
      description: 'd'.repeat(2000),
      stampsRequired: 2,
      available: true,
    }));
    const content = { ...CONTENT, rewards, offers: rewards };
    for (const record of [
      renderLoyaltyClass(content, INSTALLATION, LOGO),
      renderLoyaltyObject(content, INSTALLATION, HERO, NOW),
    ]) {
      expect(JSON.stringify(record)).toContain('And 30 more rewards on the card’s page.');
      expect(JSON.stringify(record).length).toBeLessThan(16 * 1024);
    }
  });
});

describe('parseObjectId', () => {
  it('returns the UUID of customer cards of this installation only', () => {
    expect(parseObjectId(toObjectId(UUID, INSTALLATION), INSTALLATION)).toBe(UUID);
    expect(
      parseObjectId(toObjectId(UUID, { ...INSTALLATION, idSuffix: 'live' }), INSTALLATION),
    ).toBeUndefined();
    expect(
      parseObjectId(toObjectId(UUID, { ...INSTALLATION, issuerId: '3399' }), INSTALLATION),
    ).toBeUndefined();
    expect(parseObjectId(toClassId(5, INSTALLATION), INSTALLATION)).toBeUndefined();
  });
});
