import type { Aggregate, DomainEvent } from '#platform/kernel/aggregate.js';
import { account } from '#loyalty/accounts/account.js';
import { card } from '#loyalty/cards/card.js';
import { customer } from '#loyalty/customers/customer.js';
import type { PersonalFields } from '#loyalty/customers/customer.events.js';
import { location } from '#loyalty/locations/location.js';
import { poster } from '#loyalty/posters/poster.js';
import { reward } from '#loyalty/rewards/reward.js';
import { customerCard } from '#loyalty/stamping/customer-card.js';

/** Every field, none of them null, so that the compiler notices a field that a sample lacks. */
type Filled<D> = { [K in keyof D]-?: NonNullable<D[K]> };
type SamplesOf<E extends DomainEvent> = {
  [T in E['type']]: Filled<Extract<E, { type: T }>['data']>;
};

export type Samples = {
  aggregate: Aggregate<{ accountId: number }, DomainEvent>;
  /** By type; the first one creates the stream. */
  events: Record<string, object>;
};

function samples<S extends { accountId: number }, E extends DomainEvent>(
  aggregate: Aggregate<S, E>,
  events: SamplesOf<E>,
): Samples {
  return { aggregate: aggregate as unknown as Samples['aggregate'], events };
}

export const CUSTOMER_ID = 31;
export const ACCOUNT_ID = 7;
const AT = '2026-03-01T10:00:00.000Z';

const settings = {
  name: 'Bakery',
  storeName: 'The Bakery',
  timeZone: 'Europe/Paris',
  locale: 'fr',
  country: 'FR',
};

const attributesOfCard = {
  name: 'Coffee',
  cardColor: '#112233',
  textColor: '#ffffff',
  stampIcon: 'coffee',
  stampColor: '#ffcc00',
  stampBackgroundColor: '#eeeeee',
  stampsRequired: 10,
  initialStamps: 1,
  showMemberField: true,
  showStampsToRewardField: true,
  auxiliaryFields: [{ key: 'shop', label: 'Shop', value: 'Main Street' }],
  stripType: 'color',
  stripColor: '#445566',
  stripOpacity: 50,
  stripPreset: 'beans',
  headerText: 'Hello',
  expiresAt: '2030-01-01T00:00:00.000Z',
  maxStampsPerRequest: 5,
  maxStampsPerDay: 20,
  minSecondsBetweenStamps: 30,
  barcodeFormat: 'code128',
  stampMessage: '{missing} more',
  rewardMessage: 'Come in for your {reward}',
  redemptionMessage: 'Enjoy!',
} as const;

const attributesOfReward = {
  name: 'Cake',
  description: 'Any cake',
  stampsRequired: 5,
  position: 0,
  active: true,
};

const attributesOfLocation = { name: 'Main Street', address: '1 Main Street' };

const attributesOfPoster = {
  title: 'Join',
  paperSize: 'a4',
  primaryColor: '#112233',
  textColor: '#ffffff',
  secondaryColor: '#445566',
  active: true,
  contactCollectionMode: 'email_and_phone',
  requireEmail: true,
  requirePhone: true,
  requireBirthday: true,
  minimumAge: 16,
} as const;

const personal: PersonalFields = {
  firstName: 'Ann',
  lastName: 'Lee',
  email: 'ann@example.com',
  phone: '+33123456789',
  birthday: '1990-02-03',
  metadata: { tier: 'gold' },
  externalReferences: [
    { source: 'shop', externalId: 'c-1', metadata: { tier: 'gold' }, createdAt: AT, updatedAt: AT },
  ],
};

const details = {
  locationId: 3,
  staffRef: 'till 2',
  receiptUse: 1,
  externalRef: 'receipt 1',
  silent: true,
  personal: { note: 'oat milk' },
};

/**
 * An event of every type, as it is written now. The compiler compares them with the types of the events, and
 * `stored-events.spec.ts` with the fixtures.
 */
export const SAMPLES: Samples[] = [
  samples(account, {
    AccountCreated: { id: ACCOUNT_ID, ...settings, personal: true },
    AccountUpdated: {
      ...settings,
      consentTexts: {
        marketing: 'You may write to me.',
        sms: 'You may send me text messages.',
        privacy: 'We keep your name and address for the card.',
        privacyUrl: 'https://bakery.example/privacy',
      },
      addressForm: 'informal',
      logoContainsName: true,
      smsCountries: ['AT', 'CH'],
      confirmsCounterConsents: true,
      website: 'https://bakery.example/',
      phone: '+33 1 23 45 67 89',
      email: 'hello@bakery.example',
      address: '1 Main Street',
      termsText: 'One stamp for each loaf.',
    },
    AccountLogoSet: { picture: 'd'.repeat(64) },
    AccountLogoRemoved: {},
  }),
  samples(card, {
    CardCreated: {
      id: 3,
      accountId: ACCOUNT_ID,
      ...attributesOfCard,
      auxiliaryFields: [...attributesOfCard.auxiliaryFields],
    },
    CardUpdated: { ...attributesOfCard, auxiliaryFields: [...attributesOfCard.auxiliaryFields] },
    CardArchived: {},
    CardStripImageSet: { picture: 'c'.repeat(64) },
    CardUnarchived: {},
  }),
  samples(reward, {
    RewardCreated: { id: 4, accountId: ACCOUNT_ID, cardId: 3, ...attributesOfReward },
    RewardUpdated: attributesOfReward,
    RewardDeleted: {},
  }),
  samples(customer, {
    CustomerCreated: {
      customerId: CUSTOMER_ID,
      accountId: ACCOUNT_ID,
      source: 'api',
      marketingConsent: true,
      smsConsent: true,
      sendCardLinks: true,
      agreed: { marketing: 'You may write to me.', sms: 'You may send me text messages.' },
      signup: { posterId: 3, isScanned: true },
      unconfirmedConsents: [],
      personal,
    },
    CustomerUpdated: {
      customerId: CUSTOMER_ID,
      marketingConsent: true,
      smsConsent: true,
      unconfirmedConsents: ['sms'],
      personal,
    },
    CustomerConsentConfirmed: { customerId: CUSTOMER_ID, consent: 'marketing' },
    CustomerReferencesUpdated: {
      customerId: CUSTOMER_ID,
      personal: { externalReferences: personal.externalReferences },
    },
    CustomerErased: { customerId: CUSTOMER_ID },
    CustomerMerged: {
      customerId: CUSTOMER_ID,
      fromCustomerId: 32,
      cards: { moved: [13], added: [{ fromId: 14, intoId: 12 }] },
      marketingConsent: false,
      smsConsent: false,
      unconfirmedConsents: [],
      personal,
    },
    CustomerMergedAway: {
      customerId: CUSTOMER_ID,
      intoCustomerId: 32,
      personal: { email: null, phone: null, externalReferences: [] },
    },
    CustomerUnmerged: { customerId: CUSTOMER_ID, restoredCustomerId: 32, personal },
    CustomerRestored: { customerId: CUSTOMER_ID, fromCustomerId: 32, personal },
    CustomerResealed: {
      customerId: CUSTOMER_ID,
      personal: {
        ...personal,
        given: { email: personal.email },
        taken: [
          {
            fields: ['phone'],
            metadataKeys: ['allergy'],
            references: [{ source: 'till', externalId: 'A-1' }],
          },
        ],
      },
    },
    CardLinksRequested: { customerId: CUSTOMER_ID, customerCardId: 12 },
    CustomerMessaged: {
      customerId: CUSTOMER_ID,
      messageId: '0199b2a4-5c1e-7d3f-8a6b-9c0d1e2f3a4b',
      announcementId: 3,
      ruleId: 4,
      channel: 'wallet',
      personal: { title: 'Closed on Monday', text: 'We are back on Tuesday at eight.' },
    },
    CustomerEmailBounced: {
      customerId: CUSTOMER_ID,
      messageId: '0199b2a4-5c1e-7d3f-8a6b-9c0d1e2f3a4b',
      status: '5.1.1',
      bouncedAt: '2026-03-01T10:00:00.000Z',
    },
    CustomerEmailRetried: { customerId: CUSTOMER_ID },
    CustomerPhoneNormalized: {
      customerId: CUSTOMER_ID,
      country: 'FR',
      personal: { phone: '+33123456789' },
    },
  }),
  samples(customerCard, {
    CustomerCardIssued: {
      id: 12,
      accountId: ACCOUNT_ID,
      customerId: CUSTOMER_ID,
      cardId: 3,
      uuid: '0f0e0d0c-0b0a-4908-8706-050403020100',
      code: 'ABCD2345',
    },
    StampsEarned: {
      customerId: CUSTOMER_ID,
      stamps: 6,
      source: 'pos',
      ...details,
      reverses: '0f0e0d0c-0b0a-4908-8706-050403020101',
      templateVersion: 17,
    },
    RewardUnlocked: {
      customerId: CUSTOMER_ID,
      rewardId: 4,
      name: 'Cake',
      description: 'Any cake',
      stampsRequired: 5,
    },
    RewardRedeemed: {
      customerId: CUSTOMER_ID,
      redemptionId: 9,
      rewardId: 4,
      rewardName: 'Cake',
      stampsSpent: 5,
      locked: [4],
      ...details,
      templateVersion: 17,
    },
    CustomerCardMoved: { customerId: CUSTOMER_ID, fromCustomerId: 32 },
    CustomerCardMerged: {
      customerId: CUSTOMER_ID,
      fromCustomerId: 32,
      intoId: 13,
      stamps: 3,
      unlocked: [{ rewardId: 4, stampsRequired: 2 }],
    },
    CustomerCardAbsorbed: {
      customerId: CUSTOMER_ID,
      fromId: 13,
      stamps: 3,
      unlocked: [{ rewardId: 4, stampsRequired: 2 }],
    },
    CustomerCardUnmerged: { customerId: CUSTOMER_ID, restoredId: 13, stamps: 2, missing: 1 },
    CustomerCardRestored: { customerId: CUSTOMER_ID, fromCustomerId: 32, stamps: 2, missing: 1 },
    StampsRemoved: {
      customerId: CUSTOMER_ID,
      stamps: 6,
      source: 'adjustment',
      countedAt: '2026-03-01T09:00:00.000Z',
      ...details,
      reverses: '0f0e0d0c-0b0a-4908-8706-050403020101',
    },
  }),
  samples(location, {
    LocationCreated: { id: 5, accountId: ACCOUNT_ID, ...attributesOfLocation },
    LocationUpdated: attributesOfLocation,
    LocationDeleted: {},
    LocationPinned: { latitude: 53.5503, longitude: 9.9929 },
    LocationUnpinned: {},
    LocationGeocoded: {
      latitude: 53.55,
      longitude: 9.99,
      precision: 'city',
      provider: 'offline',
    },
    LocationNotGeocoded: { status: 'not_found', provider: 'offline' },
  }),
  samples(poster, {
    PosterCreated: {
      id: 6,
      accountId: ACCOUNT_ID,
      cardId: 3,
      slug: 'bakery-coffee',
      ...attributesOfPoster,
    },
    PosterUpdated: attributesOfPoster,
    PosterDeleted: {},
  }),
];
