import type { INodeProperties } from 'n8n-workflow';
import { CARD_OPTION, IDEMPOTENCY_KEY, pagingFor, showFor, UPDATED_SINCE } from './property-parts';

export const CUSTOMER_OPERATIONS: INodeProperties[] = [
  {
    displayName: 'Operation',
    name: 'operation',
    type: 'options',
    noDataExpression: true,
    displayOptions: { show: { resource: ['customer'] } },
    options: [
      {
        name: 'Create or Find',
        value: 'createOrFind',
        description:
          'Create a customer, or return the one with the same email, phone or external ID',
        action: 'Create or find a customer',
      },
      {
        name: 'Get',
        value: 'get',
        description: 'Get a customer with their cards',
        action: 'Get a customer',
      },
      {
        name: 'Get Many',
        value: 'getAll',
        description: 'Find customers, or list all',
        action: 'Find many customers',
      },
    ],
    default: 'createOrFind',
  },
];

const PERSON_FIELDS: INodeProperties[] = [
  {
    displayName: 'Birthday',
    name: 'birthday',
    type: 'string',
    default: '',
    placeholder: '1990-05-31',
    description: 'The day of birth, as YYYY-MM-DD',
  },
  CARD_OPTION,
  {
    displayName: 'Email',
    name: 'email',
    type: 'string',
    placeholder: 'name@email.com',
    default: '',
  },
  {
    displayName: 'External ID',
    name: 'externalId',
    type: 'string',
    default: '',
    description: 'The ID of the customer in the other system',
  },
  {
    displayName: 'External Source',
    name: 'externalSource',
    type: 'string',
    default: '',
    placeholder: 'shop',
    description: 'The other system, by a name of your choice',
  },
  IDEMPOTENCY_KEY,
  {
    displayName: 'If the Customer Exists',
    name: 'ifExists',
    type: 'options',
    options: [
      { name: 'Return That Customer', value: 'return' },
      { name: 'Stop With an Error', value: 'error' },
    ],
    default: 'return',
    description: 'What to do when a customer has the email, the phone or the external ID',
  },
  {
    displayName: 'Last Name',
    name: 'lastName',
    type: 'string',
    default: '',
  },
  {
    displayName: 'Marketing Consent',
    name: 'marketingConsent',
    type: 'boolean',
    default: false,
    description: 'Whether the customer agreed to marketing',
  },
  {
    displayName: 'Metadata',
    name: 'metadata',
    type: 'json',
    default: '{}',
    description: 'Your own keys and values, as a JSON object',
  },
  {
    displayName: 'Phone',
    name: 'phone',
    type: 'string',
    default: '',
    placeholder: '+4915112345678',
  },
  {
    displayName: 'Send Card Links',
    name: 'sendCardLinks',
    type: 'boolean',
    default: false,
    description: 'Whether to send the wallet links to the customer. Needs a card.',
  },
  {
    displayName: 'SMS Consent',
    name: 'smsConsent',
    type: 'boolean',
    default: false,
    description: 'Whether the customer agreed to text messages',
  },
];

const FILTERS: INodeProperties[] = [
  {
    displayName: 'Birthday Month',
    name: 'birthdayMonth',
    type: 'number',
    typeOptions: { minValue: 1, maxValue: 12 },
    default: 1,
    description: 'From 1 for January',
  },
  CARD_OPTION,
  {
    displayName: 'Code',
    name: 'code',
    type: 'string',
    default: '',
    description: 'The code of one of their cards',
  },
  {
    displayName: 'Email',
    name: 'email',
    type: 'string',
    placeholder: 'name@email.com',
    default: '',
  },
  {
    displayName: 'External ID',
    name: 'externalId',
    type: 'string',
    default: '',
    description: 'With the external source: exactly the customer who has this ID there',
  },
  {
    displayName: 'External Source',
    name: 'source',
    type: 'string',
    default: '',
    placeholder: 'shop',
  },
  {
    displayName: 'Inactive Since',
    name: 'inactiveSince',
    type: 'dateTime',
    default: '',
    description: 'Only those without a change to any of their cards since this time',
  },
  {
    displayName: 'Min Stamps',
    name: 'minStamps',
    type: 'number',
    typeOptions: { minValue: 1 },
    default: 1,
    description: 'With a card: on that card, else on all together',
  },
  {
    displayName: 'Phone',
    name: 'phone',
    type: 'string',
    default: '',
  },
  {
    displayName: 'Search',
    name: 'search',
    type: 'string',
    default: '',
    description: 'Part of a name or email, digits of a phone number, or a whole card code',
  },
  UPDATED_SINCE,
];

export const CUSTOMER_FIELDS: INodeProperties[] = [
  {
    displayName: 'First Name',
    name: 'firstName',
    type: 'string',
    required: true,
    default: '',
    ...showFor('customer', ['createOrFind']),
  },
  {
    displayName: 'Additional Fields',
    name: 'additionalFields',
    type: 'collection',
    placeholder: 'Add Field',
    default: {},
    options: PERSON_FIELDS,
    ...showFor('customer', ['createOrFind']),
  },
  {
    displayName: 'Customer ID',
    name: 'customerId',
    type: 'string',
    required: true,
    default: '',
    ...showFor('customer', ['get']),
  },
  ...pagingFor('customer'),
  {
    displayName: 'Filters',
    name: 'filters',
    type: 'collection',
    placeholder: 'Add Filter',
    default: {},
    options: FILTERS,
    ...showFor('customer', ['getAll']),
  },
];
