import { Injectable } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'pg';
import type { CommandContext, Recorded } from '#kernel/aggregate.js';
import { NotFoundError, RejectedError, UnavailableError } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import { recorded } from '#event-store/codec.js';
import { EventStore, type Claim } from '#event-store/event-store.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import { Rows, streamOf, type Loaded } from '#event-store/rows.js';
import { CardMergedError, isAt, type CardPath } from './card-holder.js';
import { customerCard, type CustomerCard, type Template } from './customer-card.js';
import { customerCardRows, joinedOf } from './customer-card.entity.js';
import type { CustomerCardEvent, RewardRedeemed, StampsEarned } from './customer-card.events.js';
import { TemplatesService } from './templates.service.js';

const SETTLED_WITHIN_MS = 10_000;
const LOOK_AGAIN_MS = 50;

/** What a receipt number (external_ref) was used for, read back from the history. */
@Injectable()
export class ReceiptsService {
  constructor(
    private readonly pool: Pool,
    private readonly events: EventStore,
    private readonly rows: Rows,
    private readonly keys: PersonalKeys,
    private readonly templates: TemplatesService,
  ) {}

  /**
   * The action that used the receipt number, and the card as that left it; undefined when it is unused. A commit to
   * EventStoreDB claims the number before it appends: until the action is in the history, or the claim is free again,
   * this waits.
   * @throws NotFoundError when the path names no customer card, CardMergedError when another one goes on for it
   * @throws RejectedError when it was used on another card
   * @throws UnavailableError when what happens to the claim is still open after ten seconds
   */
  async find<E extends StampsEarned | RewardRedeemed>(
    { accountId }: CommandContext,
    path: CardPath,
    receipt: { claim: Claim; number: string; type: E['type'] },
  ): Promise<
    | { event: Recorded<E>; card: CustomerCard; template: Template; passInstalled: boolean }
    | undefined
  > {
    const own = streamOf(customerCard, path.id);
    const deadline = performance.now() + SETTLED_WITHIN_MS;
    for (let fresh = false; ;) {
      const used = await this.claimed(accountId, receipt.claim);
      if (!used) return undefined;
      const current = await this.cardAt(accountId, path, fresh);
      const stream = used.stream_id;
      if (stream !== own && !(await this.isMergedInto(stream, path.id, fresh))) {
        if (!fresh) {
          // A row may not say yet whom the cards have been merged into.
          fresh = true;
          continue;
        }
        if (current.state.mergedInto) throw new CardMergedError(current.state.mergedInto);
        throw new RejectedError({ external_ref: ['was already used on another customer card'] });
      }
      const then = await this.rows.fold(customerCard, stream, used.revision);
      const event = await this.lastUpTo<E>(stream, used.revision, receipt.type);
      if (then?.head.revision === used.revision && event?.data.externalRef === receipt.number) {
        const { storeVersion, passInstalled } = joinedOf(current);
        const template = await this.templates.at(then.state.cardId, storeVersion);
        return { event, card: then.state, template, passInstalled };
      }
      if (performance.now() > deadline) {
        throw new UnavailableError(
          'Another request with this external_ref has not been settled yet',
        );
      }
      await wait(LOOK_AGAIN_MS);
    }
  }

  private async claimed(
    accountId: number,
    { kind, value }: Claim,
  ): Promise<{ stream_id: string; revision: number } | undefined> {
    const [used] = await ask<{ stream_id: string; revision: number }>(this.pool, {
      name: 'receipts_find',
      text: `select stream_id, revision from es.claims
             where account_id = $1 and kind = $2 and value = $3`,
      values: [accountId, kind, value],
    });
    return used;
  }

  /** Directly, or through others that were merged in turn. Rows that lag behind may lead in a circle. */
  private async isMergedInto(stream: string, id: number, fresh: boolean): Promise<boolean> {
    let from = Number(stream.slice(customerCard.name.length + 1));
    for (const passed = new Set<number>(); from !== id;) {
      const card = await this.rows.load(customerCardRows, from, fresh);
      if (!card?.state.mergedInto || passed.has(from)) return false;
      passed.add(from);
      from = card.state.mergedInto.id;
    }
    return true;
  }

  private async cardAt(
    accountId: number,
    { customerId, id }: CardPath,
    fresh: boolean,
  ): Promise<Loaded<CustomerCard>> {
    const current = await this.rows.load(customerCardRows, id, fresh);
    if (current?.state.accountId === accountId && isAt(current.state, customerId)) return current;
    if (fresh) throw new NotFoundError('Customer card');
    return this.cardAt(accountId, { customerId, id }, true);
  }

  private async lastUpTo<E extends CustomerCardEvent>(
    stream: string,
    revision: number,
    type: E['type'],
  ): Promise<Recorded<E> | undefined> {
    const range = { from: revision, direction: 'backwards' } as const;
    for await (const stored of this.events.readStream(stream, range)) {
      if (stored.type !== type) continue;
      const [event] = await this.keys.opened([stored]);
      return event && recorded<E>(customerCard, event);
    }
    return undefined;
  }
}
