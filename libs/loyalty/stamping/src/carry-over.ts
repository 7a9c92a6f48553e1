import type { EventMeta, RecordedEvent } from '#kernel/aggregate.js';
import { adjust } from './corrections.js';
import { customerCard, isMovedByMerge, type CustomerCard, type Template } from './customer-card.js';
import type { CustomerCardEvent } from './customer-card.events.js';

const NO_RECEIPT = { externalRef: null, receiptUse: 0 };

/** The channel of stamps that were collected elsewhere and carried over. */
export const CARRY_OVER_CHANNEL = 'import';

const CARD_CODE = /^[23456789ABCDEFGHJKLMNPQRSTUVWXYZ]{8}$/;

/** Tells whether the text has the form of a card's code, in its normal form. */
export function isCardCode(text: string): boolean {
  return CARD_CODE.test(text);
}

/** Stamps that a customer brings along from another programme. */
export type CarryOver = { stamps: number; reason: string };

/** What a customer brings along to a new card: the code that is printed on their old one, and stamps. */
export type BroughtAlong = { code?: string; carryOver?: CarryOver };

/** Adds the carried-over stamps, if there are any, to a card that is being issued. */
export function carryOverToNewCard(
  issued: CustomerCardEvent[],
  template: Template,
  { customerId, carryOver }: { customerId: number; carryOver: CarryOver | undefined },
  now: Date,
): CustomerCardEvent[] {
  if (!carryOver || carryOver.stamps === 0) return issued;
  const at = now.toISOString();
  const meta: EventMeta = {
    accountId: 0,
    actor: { type: 'system', id: 0 },
    channel: CARRY_OVER_CHANNEL,
    requestId: '',
    occurredAt: at,
    recordedAt: at,
  };
  let card: CustomerCard | undefined;
  for (const event of issued) card = customerCard.evolve(card, { ...event, id: '', meta });
  return [...issued, ...adjust(card, template, { customerId, ...NO_RECEIPT, ...carryOver })];
}

/**
 * Carries stamps over to a card that may have got some that way before: the number is the whole of what the customer
 * brings along, so carrying over the same number again changes nothing.
 * @param carriedOver what the card has got that way so far
 */
export function carryOverAgain(
  card: CustomerCard | undefined,
  template: Template,
  {
    customerId,
    stamps,
    reason,
    carriedOver,
  }: CarryOver & { customerId: number; carriedOver: number },
): CustomerCardEvent[] {
  if (stamps === carriedOver) return [];
  const missing = { stamps: stamps - carriedOver, reason, ...NO_RECEIPT };
  return adjust(card, template, { customerId, ...missing });
}

/**
 * Counts the stamps that events have carried over, less what has been taken back in the same way.
 * @property absorbedIds cards that were merged into this one and have their own
 */
export function countCarriedOver(events: readonly RecordedEvent<CustomerCardEvent>[]): {
  stamps: number;
  absorbedIds: number[];
} {
  let stamps = 0;
  const absorbedIds = new Set<number>();
  for (const event of events) {
    if (event.type === 'CustomerCardAbsorbed') absorbedIds.add(event.data.fromId);
    if (event.type === 'CustomerCardUnmerged') absorbedIds.delete(event.data.restoredId);
    if (event.type !== 'StampsEarned' && event.type !== 'StampsRemoved') continue;
    const { data, meta } = event;
    if (meta.channel !== CARRY_OVER_CHANNEL || data.source !== 'adjustment') continue;
    if (isMovedByMerge(data)) continue;
    stamps += event.type === 'StampsEarned' ? data.stamps : -data.stamps;
  }
  return { stamps, absorbedIds: [...absorbedIds] };
}
