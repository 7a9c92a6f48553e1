import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { EventMeta } from '#platform/kernel/aggregate.js';
import { query } from '#platform/database/connection.js';
import { takeNextId } from '#platform/database/ids.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { drawCode } from '#loyalty/stamping/customer-card.commands.js';
import {
  customerCard,
  issue,
  assertOpenForEnrolment,
  type CustomerCard,
  type Template,
} from '#loyalty/stamping/customer-card.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import { getDecoyContext } from '#outbound/passes/pass-holders.js';

type CardHolder = { firstName: string; lastName: string | null };

/**
 * Issues cards to visitors who sign up with the address of a customer. They look like any new card, wallets included,
 * but the API does not know their code. So signing up does not reveal who is a customer.
 */
@Injectable()
export class DecoyCards {
  constructor(
    private readonly pool: Pool,
    private readonly keys: PersonalKeys,
    private readonly templates: TemplatesService,
  ) {}

  /**
   * Issues a decoy card.
   * @param meta like that of the events of a card that is issued now
   * @returns its uuid
   * @throws RejectedError when the card is not issued any more, or the customer was erased
   */
  async issue(
    path: { accountId: number; cardId: number; customerId: number },
    holder: CardHolder,
    meta: EventMeta,
  ): Promise<string> {
    const { accountId, cardId, customerId } = path;
    const template = await this.templates.get(accountId, cardId);
    const id = await takeNextId(this.pool, 'decoy_cards');
    const uuid = randomUUID();
    const state = createState(
      { id, accountId, customerId, uuid, code: drawCode() },
      template,
      meta,
    );
    const sealed = await this.keys.sealText(
      customerId,
      JSON.stringify(holder),
      getDecoyContext(uuid),
    );
    // The customer was erased just now: the link leads nowhere, like that of an erased customer.
    if (!sealed) return uuid;
    await query(this.pool, {
      name: 'decoy_cards_add',
      text: `insert into decoy_cards (id, account_id, card_id, customer_id, uuid, sealed, state)
             values ($1, $2, $3, $4, $5, $6, $7)`,
      values: [id, accountId, cardId, customerId, uuid, sealed, JSON.stringify(state)],
    });
    return uuid;
  }
}

/** Creates the state that the events of its issue would lead to. */
function createState(
  ids: Parameters<typeof issue>[0],
  template: Template,
  meta: EventMeta,
): CustomerCard {
  assertOpenForEnrolment(template, new Date(meta.recordedAt));
  const [first, ...others] = issue(ids, template).map((event) => ({ ...event, id: '', meta }));
  if (!first) throw new Error('a card is issued with an event');
  return others.reduce<CustomerCard>(
    (state, event) => customerCard.evolve(state, event),
    customerCard.evolve(undefined, first),
  );
}
