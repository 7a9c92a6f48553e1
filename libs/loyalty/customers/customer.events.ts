import type { EventTable } from '#platform/kernel/aggregate.js';
import type { Metadata } from '#platform/kernel/metadata.js';

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
  /** E.164, or digits where they are no number of the store's country. */
  phone: string | null;
  /** YYYY-MM-DD */
  birthday: string | null;
  metadata: Metadata;
  externalReferences: ExternalReference[];
};

export type CustomerSource = 'api' | 'poster' | 'app' | 'import';

/** Word for word what somebody who signed up themselves has agreed to; null: not asked, or not agreed. */
export type AgreedTexts = { marketing: string | null; sms: string | null };

/** What somebody may have agreed to: e-mails or text messages with news. */
export type ConsentKind = keyof AgreedTexts;

/** The poster at which somebody signed up. @property isScanned by its code, not by a link */
export type PosterSignup = { posterId: number; isScanned: boolean };

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
    /** Null: the consents were not given on a form of ours. */
    agreed: AgreedTexts | null;
    /** Null: they did not sign up themselves, or before this was recorded. */
    signup: PosterSignup | null;
    /** The consents that hold once they were confirmed by a link that went to the address or number. */
    unconfirmedConsents: ConsentKind[];
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
    unconfirmedConsents?: ConsentKind[];
    /** Null once the person has been erased. */
    personal: Partial<PersonalFields> | null;
  };
};

/** Records that the customer said yes on the page of the link that went to the address or number. */
export type CustomerConsentConfirmed = {
  type: 'CustomerConsentConfirmed';
  data: { customerId: number; consent: ConsentKind };
};

/**
 * The number is what it was, in the form that it has in the store's country. Sent to receivers, because it looks
 * different.
 */
export type CustomerPhoneNormalized = {
  type: 'CustomerPhoneNormalized';
  data: {
    customerId: number;
    /** The country that the store had then. */
    country: string | null;
    /** Null once the person has been erased. */
    personal: { phone: string } | null;
  };
};

/** Only the references changed: webhooks do not send it. */
export type CustomerReferencesUpdated = {
  type: 'CustomerReferencesUpdated';
  data: {
    customerId: number;
    /** Null once the person has been erased. */
    personal: Pick<PersonalFields, 'externalReferences'> | null;
  };
};

/**
 * Somebody who is known already asked for the wallet links of their card again. They go to the address on file, so
 * the requester need not be the customer. Webhooks do not send it.
 */
export type CardLinksRequested = {
  type: 'CardLinksRequested';
  data: { customerId: number; customerCardId: number };
};

/**
 * The store wrote to them. Webhooks do not send it.
 * @property messageId of the message, so that it is recorded once
 */
export type CustomerMessaged = {
  type: 'CustomerMessaged';
  data: {
    customerId: number;
    messageId: string;
    announcementId: number | null;
    ruleId: number | null;
    channel: 'wallet' | 'web_push' | 'email' | 'sms';
    /** Null once the person has been erased. */
    personal: { title: string; text: string } | null;
  };
};

/**
 * An e-mail to them came back, so nothing more is sent to their address. Webhooks do not send it.
 * @property messageId of the e-mail
 * @property status why, as an enhanced status code such as 5.1.1 (RFC 3463)
 */
export type CustomerEmailBounced = {
  type: 'CustomerEmailBounced';
  data: { customerId: number; messageId: string; status: string; bouncedAt: string };
};

/** Somebody wants the address that bounced to be tried again. Webhooks do not send it. */
export type CustomerEmailRetried = { type: 'CustomerEmailRetried'; data: { customerId: number } };

/** Says nothing about the person. Their key is destroyed with it, and so all that other events say of them. */
export type CustomerErased = { type: 'CustomerErased'; data: { customerId: number } };

/** The cards of a customer who is merged into another. */
export type MergedCards = {
  /** They change hands as they are. */
  moved: number[];
  /** The other customer had a card of the same template, which gets their stamps. */
  added: { fromId: number; intoId: number }[];
};

/** Another customer was merged into this one. `personal` is what this one takes over, sealed with their own key. */
export type CustomerMerged = {
  type: 'CustomerMerged';
  data: {
    customerId: number;
    fromCustomerId: number;
    cards: MergedCards;
    marketingConsent?: boolean;
    smsConsent?: boolean;
    unconfirmedConsents?: ConsentKind[];
    /** Null once the person has been erased. */
    personal: Partial<PersonalFields> | null;
  };
};

/** The other side: `personal` empties the fields that the survivor has taken over. */
export type CustomerMergedAway = {
  type: 'CustomerMergedAway';
  data: {
    customerId: number;
    intoCustomerId: number;
    /** Null once the person has been erased. */
    personal: Partial<PersonalFields> | null;
  };
};

/** The last merge into this customer was undone. `personal` is what is left without it. */
export type CustomerUnmerged = {
  type: 'CustomerUnmerged';
  data: {
    customerId: number;
    restoredCustomerId: number;
    /** Null once the person has been erased. */
    personal: Partial<PersonalFields> | null;
  };
};

/** The other side: the customer is one of their own again, and has back what the survivor had taken over. */
export type CustomerRestored = {
  type: 'CustomerRestored';
  data: {
    customerId: number;
    fromCustomerId: number;
    /** Null once the person has been erased. */
    personal: Partial<PersonalFields> | null;
  };
};

/** Lists what a merge has added to a customer. */
export type MergeAdditions = {
  /** Fields that were empty before. */
  fields: ('lastName' | 'email' | 'phone' | 'birthday')[];
  metadataKeys: string[];
  references: { source: string; externalId: string }[];
};

/**
 * All that the state knows of a person, so that nothing before it has to be read.
 * @property given what the customer gave to the one whom they are merged into
 * @property taken by each of the merges into the customer
 */
export type ResealedPerson = PersonalFields & {
  given: Partial<PersonalFields>;
  taken: MergeAdditions[];
};

/** Changes nothing: says it again, sealed with another key, because the former one is destroyed. */
export type CustomerResealed = {
  type: 'CustomerResealed';
  data: {
    customerId: number;
    /** Null once the person has been erased. */
    personal: ResealedPerson | null;
  };
};

export type CustomerEvent =
  | CustomerCreated
  | CustomerUpdated
  | CustomerConsentConfirmed
  | CustomerPhoneNormalized
  | CustomerReferencesUpdated
  | CardLinksRequested
  | CustomerMessaged
  | CustomerEmailBounced
  | CustomerEmailRetried
  | CustomerErased
  | CustomerMerged
  | CustomerMergedAway
  | CustomerUnmerged
  | CustomerRestored
  | CustomerResealed;

export const customerEvents = {
  CustomerCreated: {
    name: 'customer.created',
    publishedAs: 'customer.created',
    upcasts: [
      (data: Omit<CustomerCreated['data'], 'signup' | 'unconfirmedConsents'>) => ({
        ...data,
        signup: null,
      }),
      (data: Omit<CustomerCreated['data'], 'unconfirmedConsents'>) => ({
        ...data,
        unconfirmedConsents: [],
      }),
    ],
  },
  CustomerUpdated: {
    name: 'customer.updated',
    publishedAs: 'customer.updated',
    upcasts: [(data: CustomerUpdated['data']) => data],
  },
  CustomerConsentConfirmed: { name: 'customer.consent_confirmed', publishedAs: 'customer.updated' },
  CustomerPhoneNormalized: { name: 'customer.phone_normalized', publishedAs: 'customer.updated' },
  CustomerReferencesUpdated: { name: 'customer.references_updated', publishedAs: null },
  CardLinksRequested: { name: 'customer.card_links_requested', publishedAs: null },
  CustomerMessaged: { name: 'customer.messaged', publishedAs: null },
  CustomerEmailBounced: { name: 'customer.email_bounced', publishedAs: null },
  CustomerEmailRetried: { name: 'customer.email_retried', publishedAs: null },
  // So that receivers learn of it.
  CustomerErased: { name: 'customer.updated', publishedAs: 'customer.updated' },
  CustomerMerged: {
    name: 'customer.merged',
    publishedAs: 'customer.updated',
    upcasts: [(data: CustomerMerged['data']) => data],
  },
  CustomerMergedAway: { name: 'customer.merged_away', publishedAs: 'customer.updated' },
  CustomerUnmerged: { name: 'customer.unmerged', publishedAs: 'customer.updated' },
  CustomerRestored: { name: 'customer.restored', publishedAs: 'customer.updated' },
  CustomerResealed: { name: 'customer.resealed', publishedAs: null },
} as const satisfies EventTable<CustomerEvent>;
