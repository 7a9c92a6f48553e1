import type { INodeProperties } from 'n8n-workflow';
import { CARD_OPTION, IDEMPOTENCY_KEY, keyFor, reasonFor, showFor } from './property-parts';

const RESOURCE = 'customerCard';
const ON_A_CARD = ['adjust', 'get', 'redeem', 'reverse', 'stamp'];

export const CUSTOMER_CARD_OPERATIONS: INodeProperties[] = [
  {
    displayName: 'Operation',
    name: 'operation',
    type: 'options',
    noDataExpression: true,
    displayOptions: { show: { resource: ['customerCard'] } },
    options: [
      {
        name: 'Adjust',
        value: 'adjust',
        description: 'Correct a balance: add or take off stamps, for a reason',
        action: 'Adjust a customer card',
      },
      {
        name: 'Enrol',
        value: 'enrol',
        description: 'Give a customer a card',
        action: 'Enrol a customer on a card',
      },
      {
        name: 'Get',
        value: 'get',
        description: 'Get a customer card with the rewards that it can redeem',
        action: 'Get a customer card',
      },
      {
        name: 'Redeem',
        value: 'redeem',
        description: 'Redeem a reward',
        action: 'Redeem a reward',
      },
      {
        name: 'Reverse',
        value: 'reverse',
        description: 'Undo a stamping, a redemption or an adjustment',
        action: 'Reverse an event of a customer card',
      },
      {
        name: 'Stamp',
        value: 'stamp',
        description: 'Add stamps',
        action: 'Stamp a customer card',
      },
    ],
    default: 'stamp',
  },
];

const WRITE_OPTIONS: INodeProperties[] = [
  {
    displayName: 'Dry Run',
    name: 'dryRun',
    type: 'boolean',
    default: false,
    description: 'Whether to get the same response without storing anything',
  },
  IDEMPOTENCY_KEY,
  {
    displayName: 'Location Name or ID',
    name: 'locationId',
    type: 'options',
    typeOptions: { loadOptionsMethod: 'getLocations', loadOptionsDependsOn: ['accountId'] },
    default: '',
    description:
      'Choose from the list, or specify an ID using an <a href="https://docs.n8n.io/code/expressions/">expression</a>',
  },
  {
    displayName: 'Note',
    name: 'note',
    type: 'string',
    default: '',
    description: 'A note for the history',
  },
  {
    displayName: 'Occurred At',
    name: 'occurredAt',
    type: 'dateTime',
    default: '',
    description: 'When it happened, if that was earlier',
  },
  {
    displayName: 'Skip Notifications',
    name: 'skipNotifications',
    type: 'boolean',
    default: false,
    description: 'Whether to update the pass without a message to its holder',
  },
  {
    displayName: 'Source',
    name: 'source',
    type: 'options',
    options: [
      { name: 'API', value: 'api' },
      { name: 'Point of Sale', value: 'pos' },
    ],
    default: 'api',
  },
  {
    displayName: 'Staff',
    name: 'staffRef',
    type: 'string',
    default: '',
    description: 'The member of staff, by a name of your choice',
  },
];

const IDENTITY_FIELDS: INodeProperties[] = [
  {
    displayName: 'Find Card By',
    name: 'cardBy',
    type: 'options',
    options: [
      { name: 'Code', value: 'code', description: 'The code that customers show' },
      { name: 'IDs', value: 'ids', description: 'The IDs of the customer and the card' },
    ],
    default: 'code',
    ...showFor(RESOURCE, ON_A_CARD),
  },
  {
    displayName: 'Code',
    name: 'code',
    type: 'string',
    required: true,
    default: '',
    placeholder: 'K7QX2M9P',
    ...showFor(RESOURCE, ON_A_CARD, { cardBy: ['code'] }),
  },
  {
    displayName: 'Customer ID',
    name: 'customerId',
    type: 'string',
    required: true,
    default: '',
    ...showFor(RESOURCE, ON_A_CARD, { cardBy: ['ids'] }),
  },
  {
    displayName: 'Customer ID',
    name: 'customerId',
    type: 'string',
    required: true,
    default: '',
    ...showFor(RESOURCE, ['enrol']),
  },
  {
    displayName: 'Customer Card ID',
    name: 'customerCardId',
    type: 'string',
    required: true,
    default: '',
    ...showFor(RESOURCE, ON_A_CARD, { cardBy: ['ids'] }),
  },
];

export const CUSTOMER_CARD_FIELDS: INodeProperties[] = [
  ...IDENTITY_FIELDS,
  { ...CARD_OPTION, required: true, ...showFor(RESOURCE, ['enrol']) },
  {
    displayName: 'Stamps',
    name: 'stamps',
    type: 'number',
    typeOptions: { minValue: 1 },
    required: true,
    default: 1,
    description: 'The number of stamps to add',
    ...showFor(RESOURCE, ['stamp']),
  },
  {
    displayName: 'Stamps',
    name: 'stamps',
    type: 'number',
    required: true,
    default: 1,
    description: 'A positive number adds stamps, a negative one takes them off',
    ...showFor(RESOURCE, ['adjust']),
  },
  {
    displayName: 'Reward Name or ID',
    name: 'rewardId',
    type: 'options',
    typeOptions: { loadOptionsMethod: 'getRewards', loadOptionsDependsOn: ['accountId'] },
    required: true,
    default: '',
    description:
      'Choose from the list, or specify an ID using an <a href="https://docs.n8n.io/code/expressions/">expression</a>',
    ...showFor(RESOURCE, ['redeem']),
  },
  {
    displayName: 'Event ID',
    name: 'eventId',
    type: 'string',
    required: true,
    default: '',
    placeholder: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3',
    description: 'The event to undo, as a webhook or the history of the card names it',
    ...showFor(RESOURCE, ['reverse']),
  },
  reasonFor(RESOURCE, ['adjust', 'reverse']),
  {
    displayName: 'Receipt Number',
    name: 'externalRef',
    type: 'string',
    default: '',
    description:
      'The external_ref, such as an order number. It counts once in a store: the same one again adds nothing.',
    ...showFor(RESOURCE, ['adjust', 'redeem', 'stamp']),
  },
  {
    displayName: 'Options',
    name: 'options',
    type: 'collection',
    placeholder: 'Add option',
    default: {},
    options: WRITE_OPTIONS,
    ...showFor(RESOURCE, ['redeem', 'stamp']),
  },
  keyFor(RESOURCE, ['adjust', 'enrol', 'reverse']),
];
