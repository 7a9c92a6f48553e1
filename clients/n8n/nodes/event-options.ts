import type { INodePropertyOptions } from 'n8n-workflow';

/** The events that a subscription may name. */
export const EVENT_OPTIONS: INodePropertyOptions[] = [
  { name: 'Card Archived', value: 'card.archived' },
  { name: 'Card Created', value: 'card.created' },
  { name: 'Card Unarchived', value: 'card.unarchived' },
  { name: 'Card Updated', value: 'card.updated' },
  { name: 'Customer Card Created', value: 'customer_card.created' },
  { name: 'Customer Created', value: 'customer.created' },
  { name: 'Customer Updated', value: 'customer.updated' },
  { name: 'Location Created', value: 'location.created' },
  { name: 'Location Deleted', value: 'location.deleted' },
  { name: 'Location Updated', value: 'location.updated' },
  { name: 'Poster Created', value: 'poster.created' },
  { name: 'Poster Deleted', value: 'poster.deleted' },
  { name: 'Poster Updated', value: 'poster.updated' },
  { name: 'Reward Created', value: 'reward.created' },
  { name: 'Reward Deleted', value: 'reward.deleted' },
  { name: 'Reward Redeemed', value: 'reward.redeemed' },
  { name: 'Reward Unlocked', value: 'reward.unlocked' },
  { name: 'Reward Updated', value: 'reward.updated' },
  { name: 'Stamp Earned', value: 'stamp.earned' },
  { name: 'Stamp Removed', value: 'stamp.removed' },
  { name: 'Store Updated', value: 'store.updated' },
];
