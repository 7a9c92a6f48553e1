import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#platform/database/connection.js';
import {
  EventStore,
  type Claim,
  type StoredEvent,
} from '#platform/event-store/port/event-store.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { REVERSAL } from './customer-card.entity.js';
import {
  createReceiptValue,
  MAX_RECEIPT_USES,
  RECEIPT_OPERATIONS,
  type ReceiptOperation,
} from './receipt-numbers.js';

/**
 * A use of a receipt number.
 * @property index counts from 0; each use after the first follows a reversal
 * @property revision the last one of the commit that used it
 */
export type ReceiptUse = {
  operation: ReceiptOperation;
  index: number;
  stream: string;
  revision: number;
};

const TYPES = new Set(['StampsEarned', 'StampsRemoved', 'RewardRedeemed']);
const INDICES = Array.from({ length: MAX_RECEIPT_USES }, (_, index) => index);

/** Claim by claim, by primary key: joined, a plan made while there are few claims reads all of them. */
const FIND = {
  name: 'receipt_uses_find_claims',
  text: `select x.place, c.stream_id, c.revision
         from unnest($2::text[], $3::bytea[]) with ordinality as x (kind, value, place)
         cross join lateral (
           select stream_id, revision from es.claims c
           where c.account_id = $1 and c.kind = x.kind and c.value = x.value limit 1) c
         order by x.place`,
};

type HeldClaim = { place: number; stream_id: string; revision: number };

/** Finds what a receipt number (external_ref) was used for. */
@Injectable()
export class ReceiptUses {
  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly keys: PersonalKeys,
  ) {}

  /** Creates the claim of a use. */
  createClaim(
    accountId: number,
    externalRef: string,
    { operation, index, stream }: Pick<ReceiptUse, 'operation' | 'index' | 'stream'>,
  ): Claim {
    const { kind, value } = createReceiptValue(operation, externalRef, index);
    return this.keys.createClaim(accountId, kind, value, stream);
  }

  /** Finds the first use, which is nearly always the only one. */
  async findFirst(
    accountId: number,
    externalRef: string,
    operation: ReceiptOperation,
  ): Promise<ReceiptUse | undefined> {
    const [use] = await this.findAmong(accountId, externalRef, [{ operation, index: 0 }]);
    return use;
  }

  /** Lists the uses by operations, each from the first to the last. */
  list(
    accountId: number,
    externalRef: string,
    operations: readonly ReceiptOperation[] = RECEIPT_OPERATIONS,
  ): Promise<ReceiptUse[]> {
    const uses = operations.flatMap((operation) => INDICES.map((index) => ({ operation, index })));
    return this.findAmong(accountId, externalRef, uses);
  }

  /** Lists the events with a receipt number, with their personal data still sealed. */
  async listEvents(
    accountId: number,
    externalRef: string,
    operations?: readonly ReceiptOperation[],
  ): Promise<StoredEvent[]> {
    const uses = await this.list(accountId, externalRef, operations);
    const events = await Promise.all(uses.map((use) => this.findEvent(use, externalRef)));
    return events.flatMap((event) => event ?? []);
  }

  /**
   * Finds the event of a use, with its personal data still sealed.
   * @returns undefined when it is not in its stream yet: a commit may claim the number before it appends
   */
  async findEvent(
    { stream, revision }: ReceiptUse,
    externalRef: string,
  ): Promise<StoredEvent | undefined> {
    const range = { from: revision, direction: 'backwards' } as const;
    for await (const stored of this.eventStore.readStream(stream, range)) {
      if (TYPES.has(stored.type)) {
        return stored.data['externalRef'] === externalRef ? stored : undefined;
      }
    }
    return undefined;
  }

  /**
   * Finds the event that reverses one.
   * @returns undefined when it stands, 'pending' while that is being decided
   */
  async findReversal(
    accountId: number,
    { id, stream, revision }: StoredEvent,
  ): Promise<StoredEvent | 'pending' | undefined> {
    const claim = this.keys.createClaim(accountId, REVERSAL, id, stream);
    const [claimed] = await this.findHeld(accountId, [claim]);
    if (!claimed) return undefined;
    for await (const later of this.eventStore.readStream(stream, { from: revision + 1 })) {
      if (later.data['reverses'] === id) return later;
    }
    return 'pending';
  }

  private async findAmong(
    accountId: number,
    externalRef: string,
    uses: Pick<ReceiptUse, 'operation' | 'index'>[],
  ): Promise<ReceiptUse[]> {
    const claims = uses.map((use) =>
      this.createClaim(accountId, externalRef, { ...use, stream: '' }),
    );
    const rows = await this.findHeld(accountId, claims);
    return rows.flatMap(({ place, stream_id: stream, revision }) => {
      const use = uses[place - 1];
      return use ? [{ ...use, stream, revision }] : [];
    });
  }

  private findHeld(accountId: number, claims: Claim[]): Promise<HeldClaim[]> {
    return query<HeldClaim>(this.pool, {
      ...FIND,
      values: [accountId, claims.map(({ kind }) => kind), claims.map(({ value }) => value)],
    });
  }
}
