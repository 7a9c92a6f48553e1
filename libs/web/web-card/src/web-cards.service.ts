import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { validate as isUuid } from 'uuid';
import { query } from '#database/connection.js';
import type { CustomerCard } from '#stamping/customer-card.js';
import { PASS_HOLDERS } from '#passes/pass-holders.js';

/** The longest chain of merged cards to follow; nobody merges one person this often. */
const MAX_MERGES = 10;
/** A UUID that no card has. */
const UNUSED_UUID = '00000000-0000-0000-0000-000000000000';

const FIND = `
  select r.state, exists (select from personal_keys k where k.subject_id = r.customer_id) as "hasHolder"
  from ${PASS_HOLDERS} r`;

type CardRow = { state: CustomerCard; hasHolder: boolean };

/** Finds the card of a link. */
@Injectable()
export class WebCards {
  constructor(private readonly pool: Pool) {}

  /**
   * Finds the card of a link, or with `isMerged` the card that it was merged into. Unknown links and those of erased
   * customers take the same single query, so that nobody can tell them apart.
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
    for (let merges = 0; card.mergedInto && merges < MAX_MERGES; merges++) {
      const [next] = await query<CardRow>(this.pool, {
        name: 'web_card_by_id',
        text: `${FIND} where r.id = $1`,
        values: [card.mergedInto.id],
      });
      if (!next?.hasHolder) return undefined;
      card = next.state;
    }
    return { card, isMerged: card !== row.state };
  }
}
