import { renderAccountVersion } from '#platform/database/account-version.js';
import type { CapKind } from '#platform/event-store/port/event-store.js';
import type {
  ClaimChanges,
  LoadedReadModel,
  ReadModel,
  UniqueValue,
} from '#platform/event-store/read-models/read-models.js';
import { decideMergedCard } from './card-merging.js';
import { customerCard, type CustomerCard } from './customer-card.js';
import type { CorrectionDetails, CustomerCardEvent } from './customer-card.events.js';
import { findReceiptValues } from './receipt-numbers.js';
import { ISSUES } from '#translations/issues.js';

/** The kind of the claim that prevents a second reversal of an event (ADR-0041). */
export const REVERSAL = 'reversal';

/** SQL: whether the pass of a customer card is on a phone. */
const passInstalled = (id: string): string => `exists (
  select from pass_installations i
  where i.customer_card_id = ${id} and i.installed_at is not null and i.removed_at is null)`;

/** The same over `r`, a customer card's row. */
export const PASS_INSTALLED = passInstalled('r.id');

const renderExtraColumn = (id: string, account: string): string =>
  `jsonb_build_object('storeVersion', ${renderAccountVersion(account)}, 'passInstalled', ${passInstalled(id)})`;

export const customerCardReadModel: ReadModel<CustomerCard, CustomerCardEvent> = {
  ...customerCard,
  subjectIdSql: 'r.customer_id',
  extraColumn: renderExtraColumn,
  isCached: true,
  getClaimChanges: findClaims,
  getOtherIds: (event): Record<string, number> =>
    event.type === 'RewardRedeemed' ? { redemptions: event.data.redemptionId } : {},
  followUp: {
    decide: decideMergedCard,
    allowedEvents: [
      'StampsEarned',
      'StampsRemoved',
      'RewardUnlocked',
      'RewardRedeemed',
    ] satisfies CustomerCardEvent['type'][],
  },
};

/** Has no limit of its own: it keeps new cards from a customer who is being merged, or has been. */
export const customerCardCap: CapKind = {
  table: customerCard.table,
  ownerColumn: 'customer_id',
  closedCondition: 'exists (select from customers c where c.id = $1 and c.merged_into is not null)',
  issue: ISSUES.customer_being_merged,
  resolution: 'Try again.',
};

/** Returns the values of `renderExtraColumn` with their types. */
export function getExtraValues({
  extraValues,
}: Pick<LoadedReadModel<CustomerCard>, 'extraValues'>): {
  storeVersion: number;
  passInstalled: boolean;
} {
  const { storeVersion, passInstalled: isInstalled } = extraValues;
  return { storeVersion: Number(storeVersion), passInstalled: isInstalled === true };
}

/** Finds the claims of an event, also for the command that moves a card to another customer. */
export function findClaims(event: CustomerCardEvent, before?: CustomerCard): ClaimChanges {
  const { type, data } = event;
  switch (type) {
    case 'CustomerCardIssued':
      return {
        claims: [
          { kind: 'card_code', value: data.code },
          { kind: 'enrolment', value: `${data.customerId} ${data.cardId}` },
        ],
      };
    case 'StampsEarned':
    case 'StampsRemoved':
      return { claims: [...findReceiptValues(event), ...reversal(data)] };
    case 'RewardRedeemed':
      return { claims: findReceiptValues(event) };
    case 'CustomerCardMoved':
      // A card that was merged into another keeps what it holds: nobody can be enrolled on its behalf.
      if (!before || before.mergedInto) return {};
      return {
        claims: [{ kind: 'enrolment', value: `${data.customerId} ${before.cardId}` }],
        releases: [{ kind: 'enrolment', value: `${data.fromCustomerId} ${before.cardId}` }],
      };
    default:
      return {};
  }
}

/** Finds the claim that lets an event be reversed only once. */
function reversal({ reverses }: CorrectionDetails): UniqueValue[] {
  return reverses === null ? [] : [{ kind: REVERSAL, value: reverses }];
}
