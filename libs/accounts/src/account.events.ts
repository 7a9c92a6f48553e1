export type AccountAttributes = {
  name: string;
  storeName: string | null;
  personal: boolean;
  /** IANA name; days and birthdays are counted in it. */
  timeZone: string;
  locale: string;
};

export type AccountCreated = { type: 'AccountCreated'; data: { id: number } & AccountAttributes };

export type AccountEvent = AccountCreated;
