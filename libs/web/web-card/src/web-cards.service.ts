import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { validate as isUuid } from 'uuid';
import { NotFoundError } from '#kernel/errors.js';
import { query } from '#database/connection.js';
import type { CustomerCard } from '#stamping/customer-card.js';
import { CustomerCardsService } from '#stamping/customer-cards.service.js';
import { PASS_HOLDERS } from '#passes/pass-holders.js';

/** The longest chain of merged cards to follow; nobody merges one person this often. */
const MAX_MERGES = 10;
/** A UUID that no card has. */
const UNUSED_UUID = '00000000-0000-0000-0000-000000000000';

const FIND = `
  select r.state, r.confirmed, exists (select from personal_keys k where k.subject_id = r.customer_id) as "hasHolder"
  from ${PASS_HOLDERS} r`;

/** @property confirmed whether it is a decoy card that leads to the customer's own card */
type CardRow = { state: CustomerCard; confirmed: boolean; hasHolder: boolean };

/** Finds the card of a link. */
@Injectable()
export class WebCards {
  constructor(
    private readonly pool: Pool,
    private readonly customerCards: CustomerCardsService,
  ) {}

  /**
   * Finds the card of a link, or with `isMerged` the card that it was merged into or, as a confirmed decoy card, leads
   * to. Unknown links and those of erased customers take the same single query, so that nobody can tell them apart.
   */
  async find(link: string): Promise<{ card: CustomerCard; isMerged: boolean } | undefined> {
    const uuid = isUuid(link) ? link : UNUSED_UUID;
    const [row] = await query<CardRow>(this.pool, {
      name: 'web_card_by_uuid',
      text: `${FIND} where r.uuid = $1`,
      values: [uuid],
    });
    if (!row?.hasHolder) return undefined;
    let card = row.state;
    let nextId = row.confirmed ? await this.findOwnCardId(card) : card.mergedInto?.id;
    for (let merges = 0; nextId !== undefined && merges < MAX_MERGES; merges++) {
      const [next] = await query<CardRow>(this.pool, {
        name: 'web_card_by_id',
        text: `${FIND} where r.id = $1`,
        values: [nextId],
      });
      if (!next?.hasHolder) return undefined;
      card = next.state;
      nextId = card.mergedInto?.id;
    }
    return { card, isMerged: card !== row.state };
  }

  /** Finds the card that a confirmed decoy card leads to. @returns undefined when its customer has none any more */
  private async findOwnCardId({ accountId, code }: CustomerCard): Promise<number | undefined> {
    try {
      return (await this.customerCards.getPathByCode(accountId, code)).id;
    } catch (error) {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    }
  }
}
