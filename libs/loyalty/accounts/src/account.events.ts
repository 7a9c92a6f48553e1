export type AccountAttributes = {
  name: string;
  storeName: string | null;
  personal: boolean;
  /** IANA name; days and birthdays are counted in it. */
  timeZone: string;
  /** BCP 47 tag in its canonical form. */
  locale: string;
};

/** What the store itself may change. */
export type AccountSettings = Omit<AccountAttributes, 'personal'>;

export type AccountCreated = { type: 'AccountCreated'; data: { id: number } & AccountAttributes };
export type AccountUpdated = { type: 'AccountUpdated'; data: Partial<AccountSettings> };

export type AccountEvent = AccountCreated | AccountUpdated;
