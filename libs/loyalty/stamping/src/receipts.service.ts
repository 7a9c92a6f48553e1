import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { CommandContext, Recorded } from '#kernel/aggregate.js';
import { NotFoundError, RejectedError } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import { EventStore, type Claim } from '#event-store/event-store.js';
import { recorded, Rows, streamOf } from '#event-store/rows.js';
import { customerCard, type CustomerCard, type Template } from './customer-card.js';
import { customerCardRows } from './customer-card.entity.js';
import type { CustomerCardEvent } from './customer-card.events.js';
import { TemplatesService } from './templates.service.js';

/** What a receipt number (external_ref) was used for, read back from the history. */
@Injectable()
export class ReceiptsService {
  constructor(
    private readonly pool: Pool,
    private readonly events: EventStore,
    private readonly rows: Rows,
    private readonly templates: TemplatesService,
  ) {}

  /**
   * The action that used the receipt number, and the card as that left it; undefined when it is unused.
   * @throws NotFoundError when the path names no customer card
   * @throws RejectedError when it was used on another card
   */
  async find<E extends CustomerCardEvent>(
    { accountId }: CommandContext,
    { customerId, id }: { customerId: number; id: number },
    claim: Claim,
    type: E['type'],
  ): Promise<{ event: Recorded<E>; card: CustomerCard; template: Template } | undefined> {
    const [used] = await ask<{ stream_id: string; revision: number }>(this.pool, {
      name: 'receipts_find',
      text: `select stream_id, revision from es.claims
             where account_id = $1 and kind = $2 and value = $3`,
      values: [accountId, claim.kind, claim.value],
    });
    if (!used) return undefined;
    const current = await this.rows.load(customerCardRows, id);
    const known = current?.state.accountId === accountId && current.state.customerId === customerId;
    if (!current || !known) throw new NotFoundError('Customer card');
    const stream = streamOf(customerCard, id);
    if (used.stream_id !== stream) {
      throw new RejectedError({ external_ref: ['was already used on another customer card'] });
    }
    const then = await this.rows.fold(customerCard, stream, used.revision);
    for await (const stored of this.events.readStream(stream, {
      from: used.revision,
      direction: 'backwards',
    })) {
      if (stored.type !== type || !then) continue;
      const template = await this.templates.at(then.state.cardId, current.joined);
      return { event: recorded<E>(stored), card: then.state, template };
    }
    throw new Error(`${stream} holds no ${type} for a claim that names it`);
  }
}
