import {
  NodeConnectionTypes,
  type IDataObject,
  type IHookFunctions,
  type INodeType,
  type INodeTypeDescription,
  type IWebhookFunctions,
  type IWebhookResponseData,
} from 'n8n-workflow';
import { EVENT_OPTIONS } from '../event-options';
import { OPTION_LISTS } from '../option-lists';
import { isSigned } from './signature';
import {
  createSubscription,
  deleteSubscription,
  hasMatchingSubscription,
  takesOneEvent,
  type SubscriptionMemory,
} from './subscription';

const MAX_EVENT_IDS = 200;

export class InkpadTrigger implements INodeType {
  description: INodeTypeDescription = {
    displayName: 'Inkpad Trigger',
    name: 'inkpadTrigger',
    icon: { light: 'file:../../icons/inkpad.svg', dark: 'file:../../icons/inkpad.dark.svg' },
    group: ['trigger'],
    version: 1,
    subtitle: '={{$parameter["events"].join(", ")}}',
    description: 'Starts the workflow when something happens in a store, such as a stamp earned',
    defaults: { name: 'Inkpad Trigger' },
    inputs: [],
    outputs: [NodeConnectionTypes.Main],
    credentials: [{ name: 'inkpadApi', required: true }],
    webhooks: [
      { name: 'default', httpMethod: 'POST', responseMode: 'onReceived', path: 'webhook' },
    ],
    properties: [
      {
        displayName: 'Store Name or ID',
        name: 'accountId',
        type: 'options',
        typeOptions: { loadOptionsMethod: 'getAccounts' },
        required: true,
        default: '',
        description:
          'Choose from the list, or specify an ID using an <a href="https://docs.n8n.io/code/expressions/">expression</a>',
      },
      {
        displayName: 'Events',
        name: 'events',
        type: 'multiOptions',
        options: [
          { name: '[All]', value: '*', description: 'Every event, including those added later' },
          ...EVENT_OPTIONS,
        ],
        required: true,
        default: [],
      },
      {
        displayName: 'Output',
        name: 'output',
        type: 'options',
        description: 'With several events; one event is always flat',
        options: [
          {
            name: 'Envelope',
            value: 'envelope',
            description: 'The whole event: ID, type, timestamp and data',
          },
          {
            name: 'Flat',
            value: 'flat',
            description: 'The data alone, with event_id and event_type next to its fields',
          },
        ],
        default: 'envelope',
      },
      {
        displayName: 'Options',
        name: 'options',
        type: 'collection',
        placeholder: 'Add option',
        default: {},
        options: [
          {
            displayName: 'Card Names or IDs',
            name: 'cardIds',
            type: 'multiOptions',
            typeOptions: { loadOptionsMethod: 'getCards', loadOptionsDependsOn: ['accountId'] },
            default: [],
            description:
              'Choose from the list, or specify IDs using an <a href="https://docs.n8n.io/code/expressions/">expression</a>',
          },
          {
            displayName: 'Personal Data',
            name: 'personalData',
            type: 'boolean',
            default: true,
            description: 'Whether to receive names, addresses and other personal fields',
          },
        ],
      },
    ],
  };

  methods = { loadOptions: OPTION_LISTS };

  webhookMethods = {
    default: {
      async checkExists(this: IHookFunctions): Promise<boolean> {
        return hasMatchingSubscription(this);
      },
      async create(this: IHookFunctions): Promise<boolean> {
        await createSubscription(this);
        return true;
      },
      async delete(this: IHookFunctions): Promise<boolean> {
        await deleteSubscription(this);
        return true;
      },
    },
  };

  async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
    const memory: SubscriptionMemory = this.getWorkflowStaticData('node');
    const request = this.getRequestObject();
    const signed = { headers: request.headers, rawBody: request.rawBody ?? Buffer.alloc(0) };
    if (memory.secret === undefined || !isSigned(signed, memory.secret, Date.now() / 1000)) {
      this.getResponseObject().status(401).json({ error: 'The signature is not valid' });
      return { noWebhookResponse: true };
    }
    const isFlat = takesOneEvent(this.getNodeParameter('events') as string[]);
    const body = JSON.parse(signed.rawBody.toString()) as IDataObject;
    const event = isFlat
      ? { id: request.headers['webhook-id'], type: request.headers['service-event'], data: body }
      : body;
    if (event['type'] === 'webhook.test') return { webhookResponse: 'Test received' };
    const id = String(event['id']);
    const eventIds = memory.eventIds ?? [];
    if (eventIds.includes(id)) return { webhookResponse: 'Received before' };
    memory.eventIds = [...eventIds, id].slice(-MAX_EVENT_IDS);
    const json = isFlat || this.getNodeParameter('output') === 'flat' ? flatten(event) : event;
    return { workflowData: [this.helpers.returnJsonArray([json])] };
  }
}

function flatten({ id, type, data }: IDataObject): IDataObject {
  return { ...(data as IDataObject), event_id: id, event_type: type };
}
