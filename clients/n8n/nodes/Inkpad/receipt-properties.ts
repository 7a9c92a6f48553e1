import type { INodeProperties } from 'n8n-workflow';
import { EVENT_OPTIONS } from '../event-options';
import { IDEMPOTENCY_KEY, keyFor, reasonFor, showFor } from './property-parts';

export const RECEIPT_OPERATIONS: INodeProperties[] = [
  {
    displayName: 'Operation',
    name: 'operation',
    type: 'options',
    noDataExpression: true,
    displayOptions: { show: { resource: ['receipt'] } },
    options: [
      {
        name: 'Reverse',
        value: 'reverse',
        description: 'Undo every stamping and redemption with a receipt number',
        action: 'Reverse a receipt',
      },
    ],
    default: 'reverse',
  },
  {
    displayName: 'Operation',
    name: 'operation',
    type: 'options',
    noDataExpression: true,
    displayOptions: { show: { resource: ['webhook'] } },
    options: [
      {
        name: 'Replay',
        value: 'replay',
        description: 'Send the events of a period again',
        action: 'Replay the events of a webhook subscription',
      },
    ],
    default: 'replay',
  },
];

export const RECEIPT_FIELDS: INodeProperties[] = [
  {
    displayName: 'Receipt Number',
    name: 'externalRef',
    type: 'string',
    required: true,
    default: '',
    description: 'The external_ref that the stampings and redemptions were made with',
    ...showFor('receipt', ['reverse']),
  },
  reasonFor('receipt', ['reverse']),
  keyFor('receipt', ['reverse']),
  {
    displayName: 'Subscription Name or ID',
    name: 'subscriptionId',
    type: 'options',
    typeOptions: {
      loadOptionsMethod: 'getWebhookSubscriptions',
      loadOptionsDependsOn: ['accountId'],
    },
    required: true,
    default: '',
    description:
      'Choose from the list, or specify an ID using an <a href="https://docs.n8n.io/code/expressions/">expression</a>',
    ...showFor('webhook', ['replay']),
  },
  {
    displayName: 'From',
    name: 'from',
    type: 'dateTime',
    required: true,
    default: '',
    description: 'Events recorded at or after this time',
    ...showFor('webhook', ['replay']),
  },
  {
    displayName: 'Options',
    name: 'options',
    type: 'collection',
    placeholder: 'Add option',
    default: {},
    ...showFor('webhook', ['replay']),
    options: [
      {
        displayName: 'Event Types',
        name: 'types',
        type: 'multiOptions',
        options: EVENT_OPTIONS,
        default: [],
      },
      IDEMPOTENCY_KEY,
      {
        displayName: 'To',
        name: 'to',
        type: 'dateTime',
        default: '',
        description: 'Events recorded before this time. If left blank, until now.',
      },
    ],
  },
];
