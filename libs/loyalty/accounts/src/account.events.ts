export type AccountAttributes = {
  name: string;
  storeName: string | null;
  personal: boolean;
  /** IANA name; determines days and birthdays. */
  timeZone: string;
  /** BCP 47 tag in its canonical form. */
  locale: string;
};

/** The settings that the store itself can change. */
export type AccountSettings = Omit<AccountAttributes, 'personal'>;

export type AccountCreated = { type: 'AccountCreated'; data: { id: number } & AccountAttributes };
export type AccountUpdated = { type: 'AccountUpdated'; data: Partial<AccountSettings> };

export type AccountEvent = AccountCreated | AccountUpdated;
