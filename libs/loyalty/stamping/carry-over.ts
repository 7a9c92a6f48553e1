import type { EventMeta } from '#platform/kernel/aggregate.js';
import { adjust } from './corrections.js';
import { IMPORT_CHANNEL, customerCard, type CustomerCard, type Template } from './customer-card.js';
import type { CustomerCardEvent } from './customer-card.events.js';

const NO_RECEIPT = { externalRef: null, receiptUse: 0 };

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
    channel: IMPORT_CHANNEL,
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
 * @property absorbedStamps what cards that were merged into this one have got that way
 */
export function carryOverAgain(
  card: CustomerCard | undefined,
  template: Template,
  {
    customerId,
    stamps,
    reason,
    absorbedStamps,
  }: CarryOver & { customerId: number; absorbedStamps: number },
): CustomerCardEvent[] {
  const carriedOver = (card?.importedStamps ?? 0) + absorbedStamps;
  if (stamps === carriedOver) return [];
  const missing = { stamps: stamps - carriedOver, reason, ...NO_RECEIPT };
  return adjust(card, template, { customerId, ...missing });
}
