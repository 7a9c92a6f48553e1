import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { validate as isUuid } from 'uuid';
import { ask } from '#database/connection.js';
import type { CustomerCard } from '#stamping/customer-card.js';
import { PASS_HOLDERS } from '#passes/pass-holders.js';

/** Merges of merged cards; nobody merges one person this often. */
const MAX_MERGES = 10;
/** A uuid that no card has. */
const UNUSED_UUID = '00000000-0000-0000-0000-000000000000';

const FIND = `
  select r.state, exists (select from personal_keys k where k.subject_id = r.customer_id) as "hasHolder"
  from ${PASS_HOLDERS} r`;

type CardRow = { state: CustomerCard; hasHolder: boolean };

/** Whose card a link leads to. */
@Injectable()
export class WebCards {
  constructor(private readonly pool: Pool) {}

  /**
   * The card of this link, or the one that goes on for it; `merged` says which. Undefined for a link that leads nowhere
   * and for an erased customer's, after the same one look-up: nobody can tell that there was one.
   */
  async find(link: string): Promise<{ card: CustomerCard; isMerged: boolean } | undefined> {
    const uuid = isUuid(link) ? link : UNUSED_UUID;
    const [row] = await ask<CardRow>(this.pool, {
      name: 'web_card_by_uuid',
      text: `${FIND} where r.uuid = $1`,
      values: [uuid],
    });
    if (!row?.hasHolder) return undefined;
    let card = row.state;
    for (let merges = 0; card.mergedInto && merges < MAX_MERGES; merges++) {
      const [next] = await ask<CardRow>(this.pool, {
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
