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

/** The settings that the store itself can change. */
export type AccountSettings = Omit<AccountAttributes, 'personal'> & {
  consentTexts: ConsentTexts;
  /** ISO 3166-1 alpha-2; countries besides its own whose numbers it sends SMS to. */
  smsCountries: string[];
};

export type AccountCreated = { type: 'AccountCreated'; data: { id: number } & AccountAttributes };
export type AccountUpdated = { type: 'AccountUpdated'; data: Partial<AccountSettings> };

export type AccountEvent = AccountCreated | AccountUpdated;
