import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { validate as isUuid } from 'uuid';
import { query } from '#platform/database/connection.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';
import { PASS_HOLDERS } from '#outbound/passes/pass-holders.js';

/** The longest chain of merged cards to follow; nobody merges one person this often. */
const MAX_MERGES = 10;
/** A UUID that no card has. */
const UNUSED_UUID = '00000000-0000-0000-0000-000000000000';

const FIND = `
  select r.state, o.customer_card_id as "ownId",
    exists (select from personal_keys k where k.subject_id = r.customer_id) as "hasHolder"
  from ${PASS_HOLDERS} r left join decoy_owners o on r.confirmed and o.decoy_id = r.id`;

/** @property ownId the customer's own card, which a confirmed decoy card leads to */
type CardRow = { state: CustomerCard; ownId: number | null; hasHolder: boolean };

/** Finds the card of a link. */
@Injectable()
export class WebCards {
  constructor(private readonly pool: Pool) {}

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
    let nextId = row.ownId ?? card.mergedInto?.id;
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
}
