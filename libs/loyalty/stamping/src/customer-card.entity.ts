import type { Claimed, Loaded, RowTable, UniqueValue } from '#event-store/rows.js';
import { decideAgain } from './card-merging.js';
import { customerCard, type CustomerCard } from './customer-card.js';
import type {
  ActionDetails,
  CorrectionDetails,
  CustomerCardEvent,
} from './customer-card.events.js';

/** The kind of claim that makes a second reversal of an event impossible. */
export const REVERSAL = 'reversal';

/** That of the receipt number of a redemption. */
export const REDEEM_RECEIPT = 'redeem_receipt';

/** An SQL expression over `r`, a customer card's row: whether its pass is on a phone. */
export const PASS_INSTALLED = `exists (
  select from pass_installations i
  where i.customer_card_id = r.id and i.installed_at is not null and i.removed_at is null)`;

/**
 * SQL over `r`, what `joinedOf` reads. The template's version grows with every write to the card, its rewards or its store,
 * so that every load shows whether a cached template is still current.
 */
export const JOINED = `jsonb_build_array(
  (select c.revision + a.revision + coalesce(
     (select sum(w.revision + 1) from rewards w where w.card_id = c.id), 0)
   from cards c join accounts a on a.id = c.account_id
   where c.id = r.card_id),
  ${PASS_INSTALLED})`;

export const customerCardRows: RowTable<CustomerCard, CustomerCardEvent> = {
  aggregate: customerCard,
  table: 'customer_cards',
  person: 'r.customer_id',
  joined: JOINED,
  claimsOf,
  idsIn: (event): Record<string, number> =>
    event.type === 'RewardRedeemed' ? { redemptions: event.data.redemptionId } : {},
  again: decideAgain,
  withstands: [
    'StampsEarned',
    'StampsRemoved',
    'RewardUnlocked',
    'RewardRedeemed',
  ] satisfies CustomerCardEvent['type'][],
};

/** What a load of the row joins. */
export function joinedOf({ joined }: Pick<Loaded<CustomerCard>, 'joined'>): {
  templateVersion: number;
  passInstalled: boolean;
} {
  const [templateVersion, passInstalled] = joined as [number, boolean];
  return { templateVersion, passInstalled };
}

/** Also for the command that moves a card to another customer. */
export function claimsOf({ type, data }: CustomerCardEvent, before?: CustomerCard): Claimed {
  switch (type) {
    case 'CustomerCardIssued':
      return {
        taken: [
          { kind: 'card_code', value: data.code },
          { kind: 'enrolment', value: `${data.customerId} ${data.cardId}` },
        ],
      };
    case 'StampsEarned':
      return { taken: [...receipt('stamp_receipt', data), ...reversal(data)] };
    case 'StampsRemoved':
      return { taken: reversal(data) };
    case 'RewardRedeemed':
      return { taken: receipt(REDEEM_RECEIPT, data) };
    case 'CustomerCardMoved':
      // A card that was merged into another keeps what it holds: nobody can be enrolled on its behalf.
      if (!before || before.mergedInto) return {};
      return {
        taken: [{ kind: 'enrolment', value: `${data.customerId} ${before.cardId}` }],
        released: [{ kind: 'enrolment', value: `${data.fromCustomerId} ${before.cardId}` }],
      };
    default:
      return {};
  }
}

function receipt(kind: string, { externalRef }: ActionDetails): UniqueValue[] {
  return externalRef === null ? [] : [{ kind, value: externalRef }];
}

/** An event is reversed at most once. */
function reversal({ reverses }: CorrectionDetails): UniqueValue[] {
  return reverses === null ? [] : [{ kind: REVERSAL, value: reverses }];
}
