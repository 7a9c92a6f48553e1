import type { EventTable } from '#platform/kernel/aggregate.js';

export type AccountAttributes = {
  name: string;
  storeName: string | null;
  /** Made as somebody's own store. Whose, stands in `memberships`: ids of users mean nothing elsewhere. */
  personal: boolean;
  /** IANA name; determines days and birthdays. */
  timeZone: string;
  /** BCP 47 tag in its canonical form. */
  locale: string;
  /** ISO 3166-1 alpha-2; determines how phone numbers without a country code are read. */
  country: string | null;
};

/**
 * What people who sign up read, and may agree to. Null: the store has no such text, and its form does not ask.
 * @property marketing agreed to: that the store may write to them
 * @property sms agreed to: that it may send text messages
 * @property privacy only read: what the store does with what they give
 * @property privacyUrl where the whole of that stands
 */
export type ConsentTexts = {
  marketing: string | null;
  sms: string | null;
  privacy: string | null;
  privacyUrl: string | null;
};

/** How customers reach the store: on the backs of passes and on the card in the browser. Null: not shown. */
export type ContactDetails = {
  /** Absolute, with http or https. */
  website: string | null;
  /** As people write it. */
  phone: string | null;
  email: string | null;
  /** May have several lines, like the terms. */
  address: string | null;
  termsText: string | null;
};

/** The settings that the store itself can change. */
export type AccountSettings = Omit<AccountAttributes, 'personal'> &
  ContactDetails & {
    consentTexts: ConsentTexts;
    /** How customers are addressed in texts from us; null: as is usual in the language of the store. */
    addressForm: 'informal' | 'formal' | null;
    /** Whether the name of the store stands in its logo, so that it need not stand beside it. */
    logoContainsName: boolean;
    /** ISO 3166-1 alpha-2; countries besides its own whose numbers it sends SMS to. */
    smsCountries: string[];
    /** Consents that are entered on pages for staff hold once the customer confirmed them by a link. */
    confirmsCounterConsents: boolean;
  };

export type AccountCreated = { type: 'AccountCreated'; data: { id: number } & AccountAttributes };
export type AccountUpdated = { type: 'AccountUpdated'; data: Partial<AccountSettings> };

/**
 * A logo was uploaded.
 * @property picture SHA-256 of the stored PNG, in hex
 */
export type AccountLogoSet = { type: 'AccountLogoSet'; data: { picture: string } };
export type AccountLogoRemoved = { type: 'AccountLogoRemoved'; data: Record<string, never> };

export type AccountEvent = AccountCreated | AccountUpdated | AccountLogoSet | AccountLogoRemoved;

export const accountEvents = {
  AccountCreated: { name: 'account.created', publishedAs: null },
  AccountUpdated: {
    name: 'account.updated',
    publishedAs: 'store.updated',
    upcasts: [(data: AccountUpdated['data']) => data, (data: AccountUpdated['data']) => data],
  },
  AccountLogoSet: { name: 'account.logo_set', publishedAs: 'store.updated' },
  AccountLogoRemoved: { name: 'account.logo_removed', publishedAs: 'store.updated' },
} as const satisfies EventTable<AccountEvent>;
