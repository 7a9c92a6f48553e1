import type { IDataObject, IHookFunctions } from 'n8n-workflow';
import { findResource, sendRequest } from '../api-client';

/** What the node remembers between activation and deactivation, in the static data of the workflow. */
export type SubscriptionMemory = {
  accountId?: string;
  subscriptionId?: number;
  secret?: string;
  /** The ids of the last events, of which one may come twice. */
  eventIds?: string[];
};

const DESCRIPTION_LENGTH = 255;

/** Finds out whether the subscription that the node remembers still does what the node asks for. */
export async function hasMatchingSubscription(context: IHookFunctions): Promise<boolean> {
  const memory: SubscriptionMemory = context.getWorkflowStaticData('node');
  const settings = readSettings(context);
  if (memory.subscriptionId === undefined || memory.accountId !== readAccountId(context)) {
    return false;
  }
  const path = getSubscriptionPath(memory);
  const subscription = await findResource(context, path);
  if (!subscription) {
    forgetSubscription(memory);
    return false;
  }
  const isSame =
    toHref(subscription['target_url']) === toHref(settings['target_url']) &&
    (['events', 'payload_format', 'card_ids', 'personal_data'] as const).every(
      (name) => toComparable(subscription[name]) === toComparable(settings[name]),
    );
  if (!isSame) {
    await sendRequest(context, { method: 'DELETE', path });
    forgetSubscription(memory);
    return false;
  }
  // It is disabled after days without a response. What it has missed is sent once it is enabled.
  if (subscription['enabled'] === false) {
    await sendRequest(context, { method: 'PATCH', path, body: { enabled: true } });
  }
  memory.secret = String(subscription['secret']);
  return true;
}

/** Creates a subscription in place of the one that the node remembers. */
export async function createSubscription(context: IHookFunctions): Promise<void> {
  const memory: SubscriptionMemory = context.getWorkflowStaticData('node');
  await deleteRemembered(context, memory);
  const accountId = readAccountId(context);
  const { body } = await sendRequest(context, {
    method: 'POST',
    path: `/accounts/${encodeURIComponent(accountId)}/webhook_subscriptions`,
    body: readSettings(context),
  });
  const { id, secret } = body as IDataObject;
  Object.assign(memory, { accountId, subscriptionId: Number(id), secret: String(secret) });
}

export async function deleteSubscription(context: IHookFunctions): Promise<void> {
  const memory: SubscriptionMemory = context.getWorkflowStaticData('node');
  await deleteRemembered(context, memory);
  delete memory.eventIds;
}

async function deleteRemembered(
  context: IHookFunctions,
  memory: SubscriptionMemory,
): Promise<void> {
  if (memory.subscriptionId !== undefined) {
    const path = getSubscriptionPath(memory);
    // Somebody may have deleted it already.
    if (await findResource(context, path)) await sendRequest(context, { method: 'DELETE', path });
  }
  forgetSubscription(memory);
}

function forgetSubscription(memory: SubscriptionMemory): void {
  delete memory.accountId;
  delete memory.subscriptionId;
  delete memory.secret;
}

function readAccountId(context: IHookFunctions): string {
  return String(context.getNodeParameter('accountId'));
}

/** Tells whether the node takes one named event, whose subscription is flat: the body of its webhooks is the data alone. */
export function takesOneEvent(events: string[]): boolean {
  return events.length === 1 && !events.includes('*');
}

function readSettings(context: IHookFunctions): IDataObject {
  const events = context.getNodeParameter('events') as string[];
  const options = context.getNodeParameter('options', {}) as IDataObject;
  const cardIds = (options['cardIds'] ?? []) as unknown[];
  return {
    target_url: context.getNodeWebhookUrl('default'),
    events: events.includes('*') ? ['*'] : events,
    payload_format: takesOneEvent(events) ? 'flat' : 'envelope',
    card_ids: cardIds.length === 0 ? null : cardIds.map(Number),
    personal_data: options['personalData'] ?? true,
    description: `n8n: ${context.getWorkflow().name ?? ''}`.trim().slice(0, DESCRIPTION_LENGTH),
  };
}

function getSubscriptionPath({ accountId, subscriptionId }: SubscriptionMemory): string {
  return `/accounts/${encodeURIComponent(String(accountId))}/webhook_subscriptions/${subscriptionId}`;
}

/** Writes an address as the API stores it: by the URL Standard, which knows one spelling of it. */
function toHref(url: unknown): string {
  return URL.canParse(String(url)) ? new URL(String(url)).href : String(url);
}

function toComparable(value: unknown): string {
  return JSON.stringify(Array.isArray(value) ? value.map(String).sort() : value);
}
