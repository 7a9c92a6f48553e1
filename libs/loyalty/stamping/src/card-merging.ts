import type { DomainEvent } from '#kernel/aggregate.js';
import { NO_DETAILS, type CustomerCard, type Template } from './customer-card.js';
import type {
  CustomerCardEvent,
  CustomerCardMerged,
  CustomerCardUnmerged,
} from './customer-card.events.js';
import { mergeUnlocked, priceRewards, unlocks } from './unlocked-rewards.js';

/** What the cards of merged customers are decided with, and so decided again with. */
export type Decided = Pick<Template, 'rewards' | 'version'>;

const DETAILS = { ...NO_DETAILS, source: 'adjustment', silent: true, reverses: null } as const;

/** Whole, as it is: the other customer has no card of this template. */
export function handOver(card: CustomerCard, customerId: number): CustomerCardEvent[] {
  const data = { customerId, fromCustomerId: card.customerId };
  return [{ type: 'CustomerCardMoved', data }];
}

/** All its stamps, and what it has unlocked, go to the other customer's card of the same template. */
export function mergeCard(card: CustomerCard, into: CustomerCard): CustomerCardEvent[] {
  return closed(card, { customerId: into.customerId, intoId: into.id });
}

function closed(
  { customerId: fromCustomerId, stampsCount: stamps, unlocked }: CustomerCard,
  into: Pick<CustomerCardMerged['data'], 'customerId' | 'intoId'>,
): CustomerCardEvent[] {
  return [
    ...removed(fromCustomerId, stamps),
    { type: 'CustomerCardMerged', data: { ...into, fromCustomerId, stamps, unlocked } },
  ];
}

export function absorb(
  card: CustomerCard,
  from: { id: number } & Pick<CustomerCardMerged['data'], 'stamps' | 'unlocked'>,
  template: Decided,
): CustomerCardEvent[] {
  const { customerId } = card;
  const { id: fromId, stamps, unlocked } = from;
  const rewards = priceRewards(template.rewards, mergeUnlocked(card.unlocked, unlocked));
  return [
    { type: 'CustomerCardAbsorbed', data: { customerId, fromId, stamps, unlocked } },
    ...earned(card, customerId, stamps, { ...template, rewards }),
  ];
}

/** What the merge has added, as far as it was not spent. @param wanted stamps */
export function giveBack(
  { customerId, stampsCount }: CustomerCard,
  restoredId: number,
  wanted: number,
): CustomerCardEvent[] {
  const stamps = Math.min(wanted, stampsCount);
  const missing = wanted - stamps;
  return [
    { type: 'CustomerCardUnmerged', data: { customerId, restoredId, stamps, missing } },
    ...removed(customerId, stamps),
  ];
}

export function restore(
  card: CustomerCard,
  customerId: number,
  { stamps, missing }: Pick<CustomerCardUnmerged['data'], 'stamps' | 'missing'>,
  template: Decided,
): CustomerCardEvent[] {
  const { customerId: fromCustomerId } = card;
  return [
    { type: 'CustomerCardRestored', data: { customerId, fromCustomerId, stamps, missing } },
    ...earned(card, customerId, stamps, template),
  ];
}

/** What was decided on a card stays right when somebody else has stamped it or redeemed from it meanwhile. */
export function decideAgain({
  planned,
  state,
  earlier,
  basis,
}: {
  planned: CustomerCardEvent[];
  state: CustomerCard;
  earlier: DomainEvent[];
  basis: unknown;
}): CustomerCardEvent[] {
  const template = basis as Decided;
  for (const event of planned) {
    switch (event.type) {
      case 'CustomerCardMoved':
        return [event];
      case 'CustomerCardMerged':
        return closed(state, event.data);
      case 'CustomerCardAbsorbed': {
        const { fromId: id } = event.data;
        const { stamps, unlocked } = counterpart<CustomerCardMerged>(
          earlier,
          'CustomerCardMerged',
          ({ intoId }) => intoId === state.id,
        );
        return absorb(state, { id, stamps, unlocked }, template);
      }
      case 'CustomerCardUnmerged':
        return giveBack(state, event.data.restoredId, event.data.stamps + event.data.missing);
      case 'CustomerCardRestored': {
        const given = counterpart<CustomerCardUnmerged>(
          earlier,
          'CustomerCardUnmerged',
          ({ restoredId }) => restoredId === state.id,
        );
        return restore(state, event.data.customerId, given, template);
      }
      default:
        break;
    }
  }
  throw new Error(`nothing of ${planned.map(({ type }) => type).join(', ')} can be decided again`);
}

function counterpart<E extends CustomerCardEvent>(
  earlier: DomainEvent[],
  type: E['type'],
  isMeant: (data: E['data']) => boolean,
): E['data'] {
  const found = (earlier as CustomerCardEvent[]).find(
    (event): event is CustomerCardEvent & E =>
      event.type === type && isMeant(event.data as E['data']),
  );
  if (!found) throw new Error(`a merge of cards is written without its ${type}`);
  return found.data;
}

function removed(customerId: number, stamps: number): CustomerCardEvent[] {
  return stamps === 0
    ? []
    : [
        {
          type: 'StampsRemoved',
          data: { customerId, stamps, ...DETAILS },
        },
      ];
}

function earned(
  { stampsCount, unlocked }: CustomerCard,
  customerId: number,
  stamps: number,
  template: Decided,
): CustomerCardEvent[] {
  if (stamps === 0) return [];
  return [
    {
      type: 'StampsEarned',
      data: { customerId, stamps, ...DETAILS, templateVersion: template.version },
    },
    ...unlocks(customerId, stampsCount + stamps, unlocked, template),
  ];
}
