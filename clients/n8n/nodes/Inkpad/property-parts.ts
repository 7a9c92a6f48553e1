import type { INodeProperties } from 'n8n-workflow';

/** Shows a property for these operations of a resource only. */
export function showFor(
  resource: string,
  operation: string[],
  others: Record<string, string[]> = {},
): Pick<INodeProperties, 'displayOptions'> {
  return { displayOptions: { show: { resource: [resource], operation, ...others } } };
}

export const ACCOUNT_PROPERTY: INodeProperties = {
  displayName: 'Store Name or ID',
  name: 'accountId',
  type: 'options',
  typeOptions: { loadOptionsMethod: 'getAccounts' },
  required: true,
  default: '',
  description:
    'Choose from the list, or specify an ID using an <a href="https://docs.n8n.io/code/expressions/">expression</a>',
};

export const CARD_OPTION: INodeProperties = {
  displayName: 'Card Name or ID',
  name: 'cardId',
  type: 'options',
  typeOptions: { loadOptionsMethod: 'getCards', loadOptionsDependsOn: ['accountId'] },
  default: '',
  description:
    'Choose from the list, or specify an ID using an <a href="https://docs.n8n.io/code/expressions/">expression</a>',
};

export const IDEMPOTENCY_KEY: INodeProperties = {
  displayName: 'Idempotency Key',
  name: 'idempotencyKey',
  type: 'string',
  default: '',
  description:
    'The same key within 24 hours gets the first response and changes nothing. If left blank, n8n uses one that stays the same when it tries the node again.',
};

export const UPDATED_SINCE: INodeProperties = {
  displayName: 'Updated Since',
  name: 'updatedSince',
  type: 'dateTime',
  default: '',
  description: 'Only what has changed at or after this time',
};

/** The choice between all elements of a list and a number of them. */
export function pagingFor(resource: string): INodeProperties[] {
  return [
    {
      displayName: 'Return All',
      name: 'returnAll',
      type: 'boolean',
      default: false,
      description: 'Whether to return all results or only up to a given limit',
      ...showFor(resource, ['getAll']),
    },
    {
      displayName: 'Limit',
      name: 'limit',
      type: 'number',
      typeOptions: { minValue: 1 },
      default: 50,
      description: 'Max number of results to return',
      displayOptions: { show: { resource: [resource], operation: ['getAll'], returnAll: [false] } },
    },
  ];
}

/** The collection of a write that has no other options. */
export function keyFor(resource: string, operations: string[]): INodeProperties {
  return {
    displayName: 'Options',
    name: 'options',
    type: 'collection',
    placeholder: 'Add option',
    default: {},
    options: [IDEMPOTENCY_KEY],
    ...showFor(resource, operations),
  };
}

export function reasonFor(resource: string, operations: string[]): INodeProperties {
  return {
    displayName: 'Reason',
    name: 'reason',
    type: 'string',
    required: true,
    default: '',
    description: 'Why, for the history',
    ...showFor(resource, operations),
  };
}
