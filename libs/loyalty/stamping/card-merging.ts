import type { DomainEvent } from '#platform/kernel/aggregate.js';
import { NO_DETAILS, type CustomerCard, type Template } from './customer-card.js';
import type {
  CustomerCardEvent,
  CustomerCardMerged,
  CustomerCardUnmerged,
} from './customer-card.events.js';
import { mergeUnlocked, priceRewards, createUnlocks } from './unlocked-rewards.js';

/** The context that merges of cards are decided with, the first time and again. */
export type CardRules = Pick<Template, 'rewards' | 'version'>;

const DETAILS = { ...NO_DETAILS, source: 'adjustment', silent: true, reverses: null } as const;

/** Moves a whole card, as it is: the other customer has no card of this template. */
export function moveCard(card: CustomerCard, customerId: number): CustomerCardEvent[] {
  const data = { customerId, fromCustomerId: card.customerId };
  return [{ type: 'CustomerCardMoved', data }];
}

/** Merges a card: its stamps and unlocked rewards go to the other customer's card of the same template. */
export function mergeCard(card: CustomerCard, into: CustomerCard): CustomerCardEvent[] {
  return closeCard(card, { customerId: into.customerId, intoId: into.id });
}

function closeCard(
  { customerId: fromCustomerId, stampsCount: stamps, unlocked }: CustomerCard,
  into: Pick<CustomerCardMerged['data'], 'customerId' | 'intoId'>,
): CustomerCardEvent[] {
  return [
    ...removeStamps(fromCustomerId, stamps),
    { type: 'CustomerCardMerged', data: { ...into, fromCustomerId, stamps, unlocked } },
  ];
}

export function absorbCard(
  card: CustomerCard,
  from: { id: number } & Pick<CustomerCardMerged['data'], 'stamps' | 'unlocked'>,
  template: CardRules,
): CustomerCardEvent[] {
  const { customerId } = card;
  const { id: fromId, stamps, unlocked } = from;
  const rewards = priceRewards(template.rewards, mergeUnlocked(card.unlocked, unlocked));
  return [
    { type: 'CustomerCardAbsorbed', data: { customerId, fromId, stamps, unlocked } },
    ...earnStamps(card, customerId, stamps, { ...template, rewards }),
  ];
}

/** Gives back the stamps that the merge has added, unless they were spent. @param requested stamps */
export function giveBackStamps(
  { customerId, stampsCount }: CustomerCard,
  restoredId: number,
  requested: number,
): CustomerCardEvent[] {
  const stamps = Math.min(requested, stampsCount);
  const missing = requested - stamps;
  return [
    { type: 'CustomerCardUnmerged', data: { customerId, restoredId, stamps, missing } },
    ...removeStamps(customerId, stamps),
  ];
}

export function restoreCard(
  card: CustomerCard,
  customerId: number,
  { stamps, missing }: Pick<CustomerCardUnmerged['data'], 'stamps' | 'missing'>,
  template: CardRules,
): CustomerCardEvent[] {
  const { customerId: fromCustomerId } = card;
  return [
    { type: 'CustomerCardRestored', data: { customerId, fromCustomerId, stamps, missing } },
    ...earnStamps(card, customerId, stamps, template),
  ];
}

/** Decides again on a card that somebody else has stamped or redeemed from meanwhile. */
export function decideMergedCard({
  plannedEvents,
  state,
  earlierEvents,
  inputs,
}: {
  plannedEvents: CustomerCardEvent[];
  state: CustomerCard;
  earlierEvents: DomainEvent[];
  inputs: unknown;
}): CustomerCardEvent[] {
  const template = inputs as CardRules;
  for (const event of plannedEvents) {
    switch (event.type) {
      case 'CustomerCardMoved':
        return [event];
      case 'CustomerCardMerged':
        return closeCard(state, event.data);
      case 'CustomerCardAbsorbed': {
        const { fromId: id } = event.data;
        const { stamps, unlocked } = findMergeEvent<CustomerCardMerged>(
          earlierEvents,
          'CustomerCardMerged',
          ({ intoId }) => intoId === state.id,
        );
        return absorbCard(state, { id, stamps, unlocked }, template);
      }
      case 'StampsEarned': {
        // Of a merge, which decides it. A reversal comes alone, and gives back what a receipt had redeemed.
        if (event.data.reverses === null) break;
        const { customerId, stampsCount, unlocked } = state;
        const balance = stampsCount + event.data.stamps;
        return [event, ...createUnlocks(customerId, balance, unlocked, template)];
      }
      case 'CustomerCardUnmerged':
        return giveBackStamps(state, event.data.restoredId, event.data.stamps + event.data.missing);
      case 'CustomerCardRestored': {
        const unmerged = findMergeEvent<CustomerCardUnmerged>(
          earlierEvents,
          'CustomerCardUnmerged',
          ({ restoredId }) => restoredId === state.id,
        );
        return restoreCard(state, event.data.customerId, unmerged, template);
      }
      default:
        break;
    }
  }
  throw new Error(
    `nothing of ${plannedEvents.map(({ type }) => type).join(', ')} can be decided again`,
  );
}

function findMergeEvent<E extends CustomerCardEvent>(
  earlier: DomainEvent[],
  type: E['type'],
  isMeant: (data: E['data']) => boolean,
): E['data'] {
  const event = (earlier as CustomerCardEvent[]).find(
    (event): event is CustomerCardEvent & E =>
      event.type === type && isMeant(event.data as E['data']),
  );
  if (!event) throw new Error(`a merge of cards is written without its ${type}`);
  return event.data;
}

function removeStamps(customerId: number, stamps: number): CustomerCardEvent[] {
  return stamps === 0
    ? []
    : [
        {
          type: 'StampsRemoved',
          data: { customerId, stamps, ...DETAILS },
        },
      ];
}

function earnStamps(
  { stampsCount, unlocked }: CustomerCard,
  customerId: number,
  stamps: number,
  template: CardRules,
): CustomerCardEvent[] {
  if (stamps === 0) return [];
  return [
    {
      type: 'StampsEarned',
      data: { customerId, stamps, ...DETAILS, templateVersion: template.version },
    },
    ...createUnlocks(customerId, stampsCount + stamps, unlocked, template),
  ];
}
