import type { IDataObject, ILoadOptionsFunctions, INodePropertyOptions } from 'n8n-workflow';
import { readList } from './api-client';

/** The lists that the editor of n8n offers for ids. */
export const OPTION_LISTS = {
  getAccounts(this: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
    return listOptions(this, '/accounts', ({ display_store_name, store_name, name }) =>
      String(display_store_name ?? store_name ?? name),
    );
  },
  getCards(this: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
    return listOptions(this, `${getStorePath(this)}/cards`, ({ name }) => String(name));
  },
  getLocations(this: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
    return listOptions(this, `${getStorePath(this)}/locations`, ({ name }) => String(name));
  },
  getRewards(this: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
    return listOptions(
      this,
      `${getStorePath(this)}/rewards`,
      ({ name, stamps_required }) => `${name} (${stamps_required} stamps)`,
    );
  },
  getWebhookSubscriptions(this: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
    return listOptions(
      this,
      `${getStorePath(this)}/webhook_subscriptions`,
      ({ description, target_url }) => String(description ?? target_url),
    );
  },
};

async function listOptions(
  context: ILoadOptionsFunctions,
  path: string,
  getName: (element: IDataObject) => string,
): Promise<INodePropertyOptions[]> {
  const elements = await readList(context, { path, query: { limit: 250 } });
  return elements.map((element) => ({ name: getName(element), value: Number(element['id']) }));
}

/** The store that is chosen in the node. Without one, the API says that it does not exist. */
function getStorePath(context: ILoadOptionsFunctions): string {
  const accountId = context.getCurrentNodeParameter('accountId') ?? '';
  return `/accounts/${encodeURIComponent(String(accountId))}`;
}
