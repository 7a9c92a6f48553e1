import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { CommandContext, RecordedEvent } from '#kernel/aggregate.js';
import { NotFoundError, TakenError, UnavailableError } from '#kernel/errors.js';
import { RETRY, retryUntil } from '#kernel/retry-until.js';
import { query } from '#database/connection.js';
import { toRecorded } from '#event-store/port/codec.js';
import { ClaimTakenError, EventStore, type Claim } from '#event-store/port/event-store.js';
import { PersonalKeys } from '#event-store/personal-keys/personal-keys.js';
import {
  ReadModels,
  toStreamName,
  type LoadedReadModel,
} from '#event-store/read-models/read-models.js';
import { ClaimHolders } from './claim-holders.service.js';
import { CardMergedError, isHeldBy, type CardPath } from './card-holder.js';
import { customerCard, type CustomerCard, type Template } from './customer-card.js';
import { customerCardReadModel, parseExtraValue } from './customer-card.entity.js';
import type { CustomerCardEvent, RewardRedeemed, StampsEarned } from './customer-card.events.js';
import { TemplatesService } from './templates.service.js';

const SETTLE_TIMEOUT_MS = 10_000;
const RETRY_MS = 50;
const RETRY_TIMEOUT_MS = 10_000;

export type Receipt = { number: string; claim: Claim };

/** The result of an action, or of an earlier one with the same receipt number. */
export type ActionResult<R> = { body: R; isRepeated: boolean };

/** Finds the action that a receipt number (external_ref) was used for, in the history. */
@Injectable()
export class ReceiptsService {
  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly readModels: ReadModels,
    private readonly keys: PersonalKeys,
    private readonly templates: TemplatesService,
    private readonly holders: ClaimHolders,
  ) {}

  /**
   * Finds the action that used the receipt number, and the card after it; undefined when it is unused. A commit to
   * EventStoreDB claims the number before it appends: until the action is in the history, or the claim is free again,
   * this waits.
   * @throws NotFoundError when the path names no customer card, CardMergedError when another one goes on for it
   * @throws TakenError when it was used on another card, or for something else
   * @throws UnavailableError when what happens to the claim is still open after ten seconds
   */
  async find<E extends StampsEarned | RewardRedeemed>(
    { accountId }: CommandContext,
    path: CardPath,
    receipt: { claim: Claim; number: string; type: E['type']; isSame: (event: E) => boolean },
  ): Promise<
    | { event: RecordedEvent<E>; card: CustomerCard; template: Template; passInstalled: boolean }
    | undefined
  > {
    const own = toStreamName(customerCard, path.id);
    // A read model may lag behind and not show yet which card the other was merged into.
    let isFresh = false;
    return retryUntil(
      { withinMs: SETTLE_TIMEOUT_MS, delayMs: RETRY_MS },
      async () => {
        const used = await this.findUse(accountId, receipt.claim);
        if (!used) return undefined;
        const current = await this.getCard(accountId, path, isFresh);
        const stream = used.stream_id;
        if (stream !== own && !(await this.isMergedInto(stream, path.id, isFresh))) {
          if (!isFresh) {
            isFresh = true;
            return RETRY;
          }
          if (current.state.mergedInto) throw new CardMergedError(current.state.mergedInto);
          throw await this.createTakenError(stream, 'was already used on another customer card');
        }
        const then = await this.readModels.project(customerCard, stream, used.revision);
        const event = await this.findLastEvent<E>(stream, used.revision, receipt.type);
        if (then?.head.revision === used.revision && event?.data.externalRef === receipt.number) {
          if (!receipt.isSame(event)) {
            throw await this.createTakenError(stream, 'was already used for something else');
          }
          const { storeVersion, passInstalled } = parseExtraValue(current);
          const template = await this.templates.getAtVersion(then.state.cardId, storeVersion);
          return { event, card: then.state, template, passInstalled };
        }
        return RETRY;
      },
      () => new UnavailableError('Another request with this external_ref has not been settled yet'),
    );
  }

  private async createTakenError(stream: string, message: string): Promise<TakenError> {
    const id = Number(stream.slice(customerCard.name.length + 1));
    const existing = await this.holders.findSurvivor(
      customerCardReadModel,
      id,
      ({ mergedInto }) => mergedInto?.id,
    );
    return new TakenError(
      { external_ref: [message] },
      'Use a receipt number once for each operation; repeat it only with the request that it was first sent with.',
      { type: 'customer_card', id: existing },
    );
  }

  private async findUse(
    accountId: number,
    { kind, value }: Claim,
  ): Promise<{ stream_id: string; revision: number } | undefined> {
    const [used] = await query<{ stream_id: string; revision: number }>(this.pool, {
      name: 'receipts_find',
      text: `select stream_id, revision from es.claims
             where account_id = $1 and kind = $2 and value = $3`,
      values: [accountId, kind, value],
    });
    return used;
  }

  /**
   * Tells whether a record was merged into another one, directly or through others in turn. Read models that lag behind
   * may lead in a circle.
   */
  private async isMergedInto(stream: string, id: number, isFresh: boolean): Promise<boolean> {
    let from = Number(stream.slice(customerCard.name.length + 1));
    for (const visited = new Set<number>(); from !== id;) {
      const card = await this.readModels.load(customerCardReadModel, from, isFresh);
      if (!card?.state.mergedInto || visited.has(from)) return false;
      visited.add(from);
      from = card.state.mergedInto.id;
    }
    return true;
  }

  private async getCard(
    accountId: number,
    { customerId, id }: CardPath,
    isFresh: boolean,
  ): Promise<LoadedReadModel<CustomerCard>> {
    const current = await this.readModels.load(customerCardReadModel, id, isFresh);
    if (current?.state.accountId === accountId && isHeldBy(current.state, customerId))
      return current;
    if (isFresh) throw new NotFoundError('Customer card');
    return this.getCard(accountId, { customerId, id }, true);
  }

  private async findLastEvent<E extends CustomerCardEvent>(
    stream: string,
    revision: number,
    type: E['type'],
  ): Promise<RecordedEvent<E> | undefined> {
    const range = { from: revision, direction: 'backwards' } as const;
    for await (const stored of this.eventStore.readStream(stream, range)) {
      if (stored.type !== type) continue;
      const [event] = await this.keys.openEvents([stored]);
      return event && toRecorded<E>(customerCard, event);
    }
    return undefined;
  }
}

/**
 * Executes an action once for its receipt number, forever: the number is looked up before any rule applies, and of two
 * concurrent requests with the same number the second gets the result of the first. If the first wrote nothing, the
 * number stays free.
 * @throws UnavailableError when the number was taken and freed again for ten seconds
 */
export async function executeOnce<R>(
  receipt: Receipt | undefined,
  {
    findEarlier,
    execute,
  }: { findEarlier: (used: Receipt) => Promise<R | undefined>; execute: () => Promise<R> },
): Promise<ActionResult<R>> {
  if (!receipt) return { body: await execute(), isRepeated: false };
  return retryUntil(
    {
      withinMs: RETRY_TIMEOUT_MS,
      delayMs: 0,
      isRetriable: (error) => error instanceof ClaimTakenError,
    },
    async () => {
      const first = await findEarlier(receipt);
      if (first) return { body: first, isRepeated: true };
      return { body: await execute(), isRepeated: false };
    },
    (cause) => new UnavailableError('Others are using this external_ref right now', { cause }),
  );
}
