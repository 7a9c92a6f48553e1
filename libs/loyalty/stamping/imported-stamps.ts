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

/** Stamps that are imported from another programme. */
export type StampImport = { stamps: number; reason: string };

/** What is imported with a new card: the code that is printed on the old one, and stamps. */
export type ImportedCard = { code?: string; stampImport?: StampImport };

/** Adds the imported stamps, if there are any, to a card that is being issued. */
export function addImportedStamps(
  issued: CustomerCardEvent[],
  template: Template,
  { customerId, stampImport }: { customerId: number; stampImport: StampImport | undefined },
  now: Date,
): CustomerCardEvent[] {
  if (!stampImport || stampImport.stamps === 0) return issued;
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
  return [...issued, ...adjust(card, template, { customerId, ...NO_RECEIPT, ...stampImport })];
}

/**
 * Sets the imported stamps of a card that may have got some before: the number is all that the customer has from
 * another programme, so importing the same number again changes nothing.
 * @property absorbedStamps what was imported to cards that were merged into this one
 */
export function setImportedStamps(
  card: CustomerCard | undefined,
  template: Template,
  {
    customerId,
    stamps,
    reason,
    absorbedStamps,
  }: StampImport & { customerId: number; absorbedStamps: number },
): CustomerCardEvent[] {
  const importedStamps = (card?.importedStamps ?? 0) + absorbedStamps;
  if (stamps === importedStamps) return [];
  const missing = { stamps: stamps - importedStamps, reason, ...NO_RECEIPT };
  return adjust(card, template, { customerId, ...missing });
}
