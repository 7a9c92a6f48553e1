import type { INodePropertyOptions } from 'n8n-workflow';

/** The events that a subscription may name. */
export const EVENT_OPTIONS: INodePropertyOptions[] = [
  { name: 'Customer Card Created', value: 'customer_card.created' },
  { name: 'Customer Created', value: 'customer.created' },
  { name: 'Customer Updated', value: 'customer.updated' },
  { name: 'Reward Redeemed', value: 'reward.redeemed' },
  { name: 'Reward Unlocked', value: 'reward.unlocked' },
  { name: 'Stamp Earned', value: 'stamp.earned' },
  { name: 'Stamp Removed', value: 'stamp.removed' },
];
