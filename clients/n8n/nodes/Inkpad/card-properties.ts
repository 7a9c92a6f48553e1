import type { INodeProperties } from 'n8n-workflow';
import { CARD_OPTION, IDEMPOTENCY_KEY, pagingFor, showFor, UPDATED_SINCE } from './property-parts';

export const CARD_OPERATIONS: INodeProperties[] = [
  {
    displayName: 'Operation',
    name: 'operation',
    type: 'options',
    noDataExpression: true,
    displayOptions: { show: { resource: ['card'] } },
    options: [
      {
        name: 'Create',
        value: 'create',
        description: 'Create a card, a template of which each customer gets a card of their own',
        action: 'Create a card',
      },
      {
        name: 'Get Many',
        value: 'getAll',
        description: 'List the cards of a store',
        action: 'Get many cards',
      },
    ],
    default: 'getAll',
  },
  {
    displayName: 'Operation',
    name: 'operation',
    type: 'options',
    noDataExpression: true,
    displayOptions: { show: { resource: ['reward'] } },
    options: [
      {
        name: 'Get Many',
        value: 'getAll',
        description: 'List the rewards of a store',
        action: 'Get many rewards',
      },
    ],
    default: 'getAll',
  },
];

export const CARD_FIELDS: INodeProperties[] = [
  {
    displayName: 'Name',
    name: 'name',
    type: 'string',
    required: true,
    default: '',
    ...showFor('card', ['create']),
  },
  {
    displayName: 'Additional Fields',
    name: 'additionalFields',
    type: 'collection',
    placeholder: 'Add Field',
    default: {},
    ...showFor('card', ['create']),
    options: [
      {
        displayName: 'Card Color',
        name: 'cardColor',
        type: 'color',
        default: '#6B4226',
      },
      {
        displayName: 'Expires At',
        name: 'expiresAt',
        type: 'dateTime',
        default: '',
        description: 'When the card expires. If left blank, it never does.',
      },
      {
        displayName: 'Header Text',
        name: 'headerText',
        type: 'string',
        default: '',
        description:
          'A text at the top of the pass. If left blank, it shows the name of the store.',
      },
      IDEMPOTENCY_KEY,
      {
        displayName: 'Initial Stamps',
        name: 'initialStamps',
        type: 'number',
        typeOptions: { minValue: 0, maxValue: 20 },
        default: 0,
        description: 'Stamps that a new customer card begins with',
      },
      {
        displayName: 'Max Stamps Per Day',
        name: 'maxStampsPerDay',
        type: 'number',
        typeOptions: { minValue: 1 },
        default: 1,
        description: 'The number of stamps that one customer card may get in a day',
      },
      {
        displayName: 'Stamp Icon',
        name: 'stampIcon',
        type: 'string',
        default: 'coffee',
        description: 'The picture of a stamp, such as coffee, heart, star, cup, scissors or pizza',
      },
      {
        displayName: 'Stamps Required',
        name: 'stampsRequired',
        type: 'number',
        typeOptions: { minValue: 1, maxValue: 21 },
        default: 10,
        description: 'The number of stamps of a full card',
      },
      {
        displayName: 'Text Color',
        name: 'textColor',
        type: 'color',
        default: '#FFFFFF',
      },
    ],
  },
  ...pagingFor('card'),
  {
    displayName: 'Options',
    name: 'options',
    type: 'collection',
    placeholder: 'Add option',
    default: {},
    ...showFor('card', ['getAll']),
    options: [
      {
        displayName: 'Scope',
        name: 'scope',
        type: 'options',
        options: [
          { name: 'Active', value: 'active' },
          { name: 'All', value: 'all' },
          { name: 'Archived', value: 'archived' },
        ],
        default: 'active',
      },
      UPDATED_SINCE,
    ],
  },
  ...pagingFor('reward'),
  {
    displayName: 'Options',
    name: 'options',
    type: 'collection',
    placeholder: 'Add option',
    default: {},
    ...showFor('reward', ['getAll']),
    options: [
      {
        displayName: 'Active',
        name: 'active',
        type: 'boolean',
        default: true,
        description: 'Whether to list only active rewards, or only inactive ones',
      },
      CARD_OPTION,
      UPDATED_SINCE,
    ],
  },
];
