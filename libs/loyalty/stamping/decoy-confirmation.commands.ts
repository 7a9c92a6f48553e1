import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { query } from '#platform/database/connection.js';
import { AuditedWrites } from '#platform/event-store/commands/audited-writes.service.js';
import { normalizeCardCode } from './card-code.js';
import { CustomerCardsService, type CodeMatch } from './customer-cards.service.js';
import { assertPersonSize, MEASURE_PERSON, type PersonSize } from './person-size.js';
import { renderSamePerson } from './same-person.js';
import { createStampingError } from './stamping-errors.js';
import { ISSUES } from '#translations/issues.js';

/**
 * Has the wallets updated that have the decoy card: from now on it shows the customer's own balance. Decoy cards have ids
 * above those of customer cards, so no others are compared than those of this card that were issued later.
 */
const REFRESH_PASS = `
  insert into pass_refreshes as r (account_id, card_id, last_customer_card_id)
  select account_id, card_id, id - 1 from decoy_cards where account_id = $1 and code = $2
  on conflict (account_id, card_id) do update
  set last_customer_card_id = least(r.last_customer_card_id, excluded.last_customer_card_id)`;

/** Lets the confirmations for one person wait for one another, by their oldest decoy card. */
const LOCK_PERSON = `
  select from decoy_cards where customer_id in (${renderSamePerson('$1')})
  order by id limit 1 for update`;

/** Confirms that whoever shows a decoy card is its customer: from now on it leads to their own card (ADR-0051). */
export class ConfirmDecoyCard extends Command<void> {
  constructor(
    readonly context: CommandContext,
    readonly code: string,
  ) {
    super();
  }
}

/** Does nothing for the code of a customer card, and for a decoy card that is confirmed already. */
@CommandHandler(ConfirmDecoyCard)
export class ConfirmDecoyCardHandler implements ICommandHandler<ConfirmDecoyCard> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly customerCards: CustomerCardsService,
  ) {}

  /** @throws NotFoundError when no card has the code; RejectedError when the customer has too many cards */
  async execute({ context, code }: ConfirmDecoyCard): Promise<void> {
    const { accountId } = context;
    const { id, customerId, decoy } = await this.customerCards.getPathByCode(accountId, code);
    if (decoy !== 'unconfirmed') return;
    // The key belongs to the response of the request, which is more than this write.
    const { keyed: _keyed, ...by } = context;
    await this.writes.write(by, async (transaction) => {
      await query(transaction.manager, LOCK_PERSON, [customerId]);
      const confirmed = await query(transaction.manager, {
        text: `update decoy_cards set confirmed_at = now()
         where account_id = $1 and code = $2 and confirmed_at is null returning id`,
        values: [accountId, normalizeCardCode(code)],
      });
      if (confirmed.length === 0) return;
      const [size] = await query<PersonSize>(transaction.manager, MEASURE_PERSON, [[customerId]]);
      if (size) assertPersonSize(size);
      await query(transaction.manager, REFRESH_PASS, [accountId, normalizeCardCode(code)]);
      const subject = { customer_id: customerId, customer_card_id: id };
      await transaction.audit({ accountIds: [accountId], type: 'decoy_card.confirmed', subject });
    });
  }
}

/** @throws RejectedError for a decoy card that nobody has confirmed: a stranger may have signed up with the address */
export function assertConfirmed({ decoy }: Pick<CodeMatch, 'decoy'>): void {
  if (decoy !== 'unconfirmed') return;
  throw createStampingError({ base: [ISSUES.card_unconfirmed] }, 'card_unconfirmed');
}

export const decoyConfirmationHandlers = [ConfirmDecoyCardHandler];
