import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#database/connection.js';
import { PersonalKeys } from '#event-store/personal-keys/personal-keys.js';
import type { PageRange } from '#http/page.js';
import type { RewardRedeemed } from '#stamping/customer-card.events.js';
import { REDEEM_RECEIPT } from '#stamping/customer-card.entity.js';
import type { DetailedEntry } from './history-entry.dto.js';
import { toEntry, ENTRY_COLUMNS, type EntryRow } from './history-table.service.js';
import { HistoryService, type EntryWithEvent, type Tail } from './history.service.js';
import {
  isOlder,
  isRedemption,
  toRedemptionKey,
  createRedemptionQuery,
  REDEEMED,
  type RedemptionFilter,
} from './redemption-query.js';

type ReceiptUse = { stream: string; revision: number };

/** Finds the last redemption up to a revision: a claim names a commit, and the event is the last one up to there. */
const LAST_UP_TO = {
  name: 'redemptions_last_up_to',
  text: `select ${ENTRY_COLUMNS} from history
         where (stream, revision) >= ($1, 0) and (stream, revision) <= ($1, $2) and seq <= $3
           and name = '${REDEEMED}'
         order by stream desc, revision desc limit 1`,
};

/** Lists redemptions, newest first, for comparison with receipts. */
@Injectable()
export class RedemptionsService {
  constructor(
    private readonly pool: Pool,
    private readonly history: HistoryService,
    private readonly keys: PersonalKeys,
  ) {}

  /** @returns what finds the elements of one page after another */
  async list(
    accountId: number,
    filter: RedemptionFilter,
    externalRef: string | null,
  ): Promise<(range: PageRange) => Promise<DetailedEntry[]>> {
    const { tail, end } = await this.history.readTailOfLog(accountId);
    if (externalRef !== null) {
      const one = await this.findByReceipt(accountId, externalRef, { tail, end });
      const matching = one.filter(({ entry }) => isRedemption(filter, entry));
      return async ({ after }) =>
        matching.filter(({ entry }) => after === null || isOlder(entry, after));
    }
    const late = tail.filter(({ entry }) => isRedemption(filter, entry));
    return async (range) => {
      const statement = createRedemptionQuery(ENTRY_COLUMNS, { accountId, end }, filter, range);
      const rows = await query<EntryRow>(this.pool, statement);
      const { after, limit } = range;
      const entries: EntryWithEvent[] = [
        ...late.filter(({ entry }) => after === null || isOlder(entry, after)),
        ...rows.map((row) => ({ entry: toEntry(row) })),
      ];
      entries.sort((one, other) => (isOlder(one.entry, toRedemptionKey(other.entry)) ? 1 : -1));
      return this.history.addDetails(entries.slice(0, limit), tail);
    };
  }

  /** Finds the redemption with a receipt number: at most one, since a number counts once in a store. */
  private async findByReceipt(
    accountId: number,
    externalRef: string,
    { tail, end }: Tail,
  ): Promise<DetailedEntry[]> {
    const use = await this.findReceiptUse(accountId, externalRef);
    if (!use) return [];
    const isUpTo = ({ entry }: EntryWithEvent) =>
      entry.name === REDEEMED && entry.stream === use.stream && entry.revision <= use.revision;
    // The newest first, and all of it newer than what is in the table.
    const late = tail.find(isUpTo);
    const entries = late ? [late] : await this.findInTable(use, end);
    const detailed = await this.history.addDetails(entries, tail);
    // A claim may be taken shortly before its redemption is recorded.
    return detailed.filter(
      ({ event }) => (event.data as RewardRedeemed['data']).externalRef === externalRef,
    );
  }

  private async findInTable(
    { stream, revision }: ReceiptUse,
    end: number,
  ): Promise<EntryWithEvent[]> {
    const rows = await query<EntryRow>(this.pool, {
      ...LAST_UP_TO,
      values: [stream, revision, end],
    });
    return rows.map((row) => ({ entry: toEntry(row) }));
  }

  private async findReceiptUse(
    accountId: number,
    externalRef: string,
  ): Promise<ReceiptUse | undefined> {
    const { kind, value } = this.keys.createClaim(accountId, REDEEM_RECEIPT, externalRef, '');
    const [use] = await query<ReceiptUse>(this.pool, {
      name: 'redemptions_receipt',
      text: `select stream_id as stream, revision from es.claims
             where account_id = $1 and kind = $2 and value = $3`,
      values: [accountId, kind, value],
    });
    return use;
  }
}
