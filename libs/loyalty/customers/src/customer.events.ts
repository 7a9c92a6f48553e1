import type { Metadata } from '#kernel/metadata.js';

export type ExternalReference = {
  source: string;
  externalId: string;
  metadata: Metadata;
  createdAt: string;
  updatedAt: string;
};

/** In events only sealed with the customer's own key. */
export type PersonalFields = {
  firstName: string;
  lastName: string | null;
  email: string | null;
  /** E.164, or digits where the country is unknown. */
  phone: string | null;
  /** YYYY-MM-DD */
  birthday: string | null;
  metadata: Metadata;
  externalReferences: ExternalReference[];
};

export type CustomerSource = 'api' | 'poster' | 'app' | 'import';

export type CustomerCreated = {
  type: 'CustomerCreated';
  data: {
    customerId: number;
    accountId: number;
    source: CustomerSource;
    marketingConsent: boolean;
    smsConsent: boolean;
    /** Whether to send the wallet links of the card that the customer was enrolled on. */
    sendCardLinks: boolean;
    /** Null once the person has been erased. */
    personal: PersonalFields | null;
  };
};

/** The complete new values of only the changed fields; sent to receivers. */
export type CustomerUpdated = {
  type: 'CustomerUpdated';
  data: {
    customerId: number;
    marketingConsent?: boolean;
    smsConsent?: boolean;
    /** Null once the person has been erased. */
    personal: Partial<PersonalFields> | null;
  };
};

/** Only the references changed: not sent to receivers (contract section 10). */
export type CustomerReferencesUpdated = {
  type: 'CustomerReferencesUpdated';
  data: {
    customerId: number;
    /** Null once the person has been erased. */
    personal: Pick<PersonalFields, 'externalReferences'> | null;
  };
};

/** Says nothing about the person. Their key is destroyed with it, and so all that other events say of them. */
export type CustomerErased = { type: 'CustomerErased'; data: { customerId: number } };

export type CustomerEvent =
  CustomerCreated | CustomerUpdated | CustomerReferencesUpdated | CustomerErased;
