import type { IDataObject } from 'n8n-workflow';
import type { ItemRequest } from './item-request';

/** Does one operation for one input item. @returns the items to output */
export type Operation = (item: ItemRequest) => Promise<IDataObject[]>;

/** Every operation, by resource and value of the parameter "operation". */
export const OPERATIONS: Record<string, Record<string, Operation>> = {
  card: {
    create: async (item) => {
      const { idempotency_key: key, ...fields } = item.getFields('additionalFields');
      const card = { name: item.getText('name'), ...fields };
      return [await post(item, '/cards', { card }, key)];
    },
    getAll: (item) => item.list('/cards', item.getFields('options'), 'limit'),
  },
  customer: {
    createOrFind: createOrFindCustomer,
    get: async (item) => [await item.get(`/customers/${item.getPathId('customerId')}`)],
    getAll: (item) => {
      const filters = item.getFields('filters');
      item.assertWholeReference(filters['source'], filters['external_id']);
      // The blank cursor lists by id, so that nobody is missing or listed twice while others are created.
      return item.list('/customers', { ...filters, cursor: '' }, 'items');
    },
  },
  customerCard: {
    adjust: async (item) => {
      const body = { stamps: item.getNumber('stamps'), reason: item.getText('reason') };
      return [await writeToCard(item, `${await findCardPath(item)}/adjust`, body)];
    },
    enrol: async (item) => {
      const { idempotency_key: key } = item.getFields('options');
      const path = `/customers/${item.getPathId('customerId')}/customer_cards`;
      return [await post(item, path, { card_id: item.getNumber('cardId') }, key)];
    },
    get: async (item) => [await item.get(getCardPath(item))],
    redeem: async (item) => {
      const body = { reward_id: item.getNumber('rewardId') };
      return [await writeToCard(item, `${getCardPath(item)}/redeem`, body)];
    },
    reverse: async (item) => {
      const path = `${await findCardPath(item)}/events/${item.getPathId('eventId')}/reverse`;
      const { idempotency_key: key } = item.getFields('options');
      return [await post(item, path, { reason: item.getText('reason') }, key)];
    },
    stamp: async (item) => {
      const body = { stamps: item.getNumber('stamps') };
      return [await writeToCard(item, `${getCardPath(item)}/stamp`, body)];
    },
  },
  receipt: {
    reverse: async (item) => {
      const { idempotency_key: key } = item.getFields('options');
      const body = { external_ref: item.getText('externalRef'), reason: item.getText('reason') };
      return [await post(item, '/receipts/reverse', body, key)];
    },
  },
  reward: {
    getAll: (item) => item.list('/rewards', item.getFields('options'), 'limit'),
  },
  webhook: {
    replay: async (item) => {
      const { idempotency_key: key, ...fields } = item.getFields('options');
      const path = `/webhook_subscriptions/${item.getPathId('subscriptionId')}/replay`;
      return [await post(item, path, { from: item.getTime('from'), ...fields }, key)];
    },
  },
};

async function createOrFindCustomer(item: ItemRequest): Promise<IDataObject[]> {
  const {
    idempotency_key: key,
    card_id,
    send_card_links,
    if_exists = 'return',
    external_source: source,
    external_id,
    metadata,
    ...fields
  } = item.getFields('additionalFields');
  item.assertWholeReference(source, external_id);
  const customer = {
    first_name: item.getText('firstName'),
    ...fields,
    ...(metadata === undefined ? {} : { metadata: parseObject(metadata) }),
    ...(source === undefined ? {} : { external_references: [{ source, external_id }] }),
  };
  const body = { customer, card_id, send_card_links, if_exists };
  const response = await item.post('/customers', body, { key });
  return [{ ...(response.body as IDataObject), created: response.status === 201 }];
}

async function post(
  item: ItemRequest,
  path: string,
  body: IDataObject,
  key: unknown,
): Promise<IDataObject> {
  const response = await item.post(path, body, { key });
  return response.body as IDataObject;
}

/** Sends a stamping, a redemption or an adjustment, which counts once for its receipt number. */
async function writeToCard(
  item: ItemRequest,
  path: string,
  body: IDataObject,
): Promise<IDataObject> {
  const { idempotency_key: key, dry_run, ...fields } = item.getFields('options');
  const externalRef = item.getText('externalRef');
  const reference = externalRef === '' ? {} : { external_ref: externalRef };
  const query = dry_run === true ? { dry_run: true } : {};
  const response = await item.post(path, { ...body, ...reference, ...fields }, { key, query });
  return response.body as IDataObject;
}

function getCardPath(item: ItemRequest): string {
  return item.getText('cardBy') === 'code'
    ? `/customer_cards/by_code/${item.getPathId('code')}`
    : `/customers/${item.getPathId('customerId')}/customer_cards/${item.getPathId('customerCardId')}`;
}

/** Finds the path by ids, for operations that the API does not have by code. */
async function findCardPath(item: ItemRequest): Promise<string> {
  const path = getCardPath(item);
  if (item.getText('cardBy') !== 'code') return path;
  const { id, customer_id } = await item.get(path);
  return `/customers/${customer_id}/customer_cards/${id}`;
}

function parseObject(metadata: unknown): unknown {
  return typeof metadata === 'string' ? JSON.parse(metadata) : metadata;
}
