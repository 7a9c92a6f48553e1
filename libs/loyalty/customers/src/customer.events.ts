import type { Metadata } from '#kernel/metadata.js';

export type ExternalReference = {
  source: string;
  externalId: string;
  metadata: Metadata;
  createdAt: string;
  updatedAt: string;
};

/** Stands in events only sealed with the customer's own key. */
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
    /** The wish to be sent the wallet links, on the card that the customer was enrolled on. */
    sendCardLinks: boolean;
    /** Null once the person was erased. */
    personal: PersonalFields | null;
  };
};

/** Whole new values, of nothing but what changed; receivers are told of it. */
export type CustomerUpdated = {
  type: 'CustomerUpdated';
  data: {
    customerId: number;
    marketingConsent?: boolean;
    smsConsent?: boolean;
    /** Null once the person was erased. */
    personal: Partial<PersonalFields> | null;
  };
};

/** A change of nothing else: receivers are not told (contract section 10). */
export type CustomerReferencesUpdated = {
  type: 'CustomerReferencesUpdated';
  data: {
    customerId: number;
    /** Null once the person was erased. */
    personal: Pick<PersonalFields, 'externalReferences'> | null;
  };
};

export type CustomerEvent = CustomerCreated | CustomerUpdated | CustomerReferencesUpdated;
