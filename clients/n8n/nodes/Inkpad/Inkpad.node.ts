import {
  NodeApiError,
  NodeConnectionTypes,
  NodeOperationError,
  type IExecuteFunctions,
  type INodeExecutionData,
  type INodeType,
  type INodeTypeDescription,
  type JsonObject,
} from 'n8n-workflow';
import { OPTION_LISTS } from '../option-lists';
import { CARD_FIELDS, CARD_OPERATIONS } from './card-properties';
import { CUSTOMER_CARD_FIELDS, CUSTOMER_CARD_OPERATIONS } from './customer-card-properties';
import { CUSTOMER_FIELDS, CUSTOMER_OPERATIONS } from './customer-properties';
import { ItemRequest } from './item-request';
import { OPERATIONS } from './operations';
import { ACCOUNT_PROPERTY } from './property-parts';
import { RECEIPT_FIELDS, RECEIPT_OPERATIONS } from './receipt-properties';

export class Inkpad implements INodeType {
  description: INodeTypeDescription = {
    displayName: 'Inkpad',
    name: 'inkpad',
    icon: { light: 'file:../../icons/inkpad.svg', dark: 'file:../../icons/inkpad.dark.svg' },
    group: ['output'],
    version: 1,
    subtitle: '={{$parameter["operation"] + ": " + $parameter["resource"]}}',
    description: 'Stamp loyalty cards, redeem rewards and look up customers',
    defaults: { name: 'Inkpad' },
    usableAsTool: true,
    inputs: [NodeConnectionTypes.Main],
    outputs: [NodeConnectionTypes.Main],
    credentials: [{ name: 'inkpadApi', required: true }],
    properties: [
      {
        displayName: 'Resource',
        name: 'resource',
        type: 'options',
        noDataExpression: true,
        options: [
          {
            name: 'Card',
            value: 'card',
            description: 'A template, of which each customer gets a card',
          },
          { name: 'Customer', value: 'customer' },
          { name: 'Customer Card', value: 'customerCard', description: 'The card of one customer' },
          { name: 'Receipt', value: 'receipt' },
          { name: 'Reward', value: 'reward' },
          { name: 'Webhook', value: 'webhook' },
        ],
        default: 'customerCard',
      },
      ...CARD_OPERATIONS,
      ...CUSTOMER_OPERATIONS,
      ...CUSTOMER_CARD_OPERATIONS,
      ...RECEIPT_OPERATIONS,
      ACCOUNT_PROPERTY,
      ...CARD_FIELDS,
      ...CUSTOMER_FIELDS,
      ...CUSTOMER_CARD_FIELDS,
      ...RECEIPT_FIELDS,
    ],
  };

  methods = { loadOptions: OPTION_LISTS };

  async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
    const output: INodeExecutionData[] = [];
    for (const itemIndex of this.getInputData().keys()) {
      try {
        const resource = this.getNodeParameter('resource', itemIndex);
        const name = this.getNodeParameter('operation', itemIndex);
        const operation = OPERATIONS[resource]?.[name];
        if (!operation) {
          throw new NodeOperationError(this.getNode(), `${resource} has no operation ${name}`, {
            itemIndex,
          });
        }
        const elements = await operation(new ItemRequest(this, itemIndex));
        output.push(...elements.map((json) => ({ json, pairedItem: { item: itemIndex } })));
      } catch (error) {
        const { message, description } = error as Error & { description?: string };
        if (!this.continueOnFail()) {
          // A NodeApiError stays the one that it is.
          throw new NodeApiError(this.getNode(), error as JsonObject, {
            itemIndex,
            ...(description ? { description } : {}),
          });
        }
        output.push({
          json: { error: message, ...(description ? { description } : {}) },
          pairedItem: { item: itemIndex },
        });
      }
    }
    return [output];
  }
}
