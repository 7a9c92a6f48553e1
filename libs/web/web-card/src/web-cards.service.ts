import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { validate as isUuid } from 'uuid';
import { ask } from '#database/connection.js';
import type { CustomerCard } from '#stamping/customer-card.js';
import { PASS_HOLDERS } from '#passes/pass-holders.js';

/** Merges of merged cards; nobody merges one person this often. */
const MOST_MERGES = 10;
/** A uuid that no card has. */
const NOBODYS = '00000000-0000-0000-0000-000000000000';

const FIND = `
  select r.state, exists (select from personal_keys k where k.subject_id = r.customer_id) as known
  from ${PASS_HOLDERS} r`;

type FoundRow = { state: CustomerCard; known: boolean };

/** Whose card a link leads to. */
@Injectable()
export class WebCards {
  constructor(private readonly pool: Pool) {}

  /**
   * The card of this link, or the one that goes on for it; `merged` says which. Undefined for a link that leads nowhere
   * and for an erased customer's, after the same one look-up: nobody can tell that there was one.
   */
  async find(link: string): Promise<{ card: CustomerCard; merged: boolean } | undefined> {
    const uuid = isUuid(link) ? link : NOBODYS;
    const [found] = await ask<FoundRow>(this.pool, {
      name: 'web_card_by_uuid',
      text: `${FIND} where r.uuid = $1`,
      values: [uuid],
    });
    if (!found?.known) return undefined;
    let card = found.state;
    for (let merges = 0; card.mergedInto && merges < MOST_MERGES; merges++) {
      const [next] = await ask<FoundRow>(this.pool, {
        name: 'web_card_by_id',
        text: `${FIND} where r.id = $1`,
        values: [card.mergedInto.id],
      });
      if (!next?.known) return undefined;
      card = next.state;
    }
    return { card, merged: card !== found.state };
  }
}
