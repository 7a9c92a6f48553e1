import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#database/connection.js';
import type { PageRange } from '#http/page.js';
import type { EntryWithEvent } from './entry.js';
import type { DetailedEntry } from './history-entry.dto.js';
import { toEntry, ENTRY_COLUMNS, type EntryRow } from './history-table.service.js';
import { HistoryService, type DatabaseChoice } from './history.service.js';
import { ReceiptEntries } from './receipt-entries.service.js';
import {
  isOlder,
  isRedemption,
  toRedemptionKey,
  createRedemptionQuery,
  type RedemptionFilter,
} from './redemption-query.js';

/** Lists redemptions, newest first, for comparison with receipts. */
@Injectable()
export class RedemptionsService {
  constructor(
    private readonly pool: Pool,
    private readonly history: HistoryService,
    private readonly receipts: ReceiptEntries,
  ) {}

  /**
   * @param readFrom for the pages of a report; by default the primary
   * @returns what finds the elements of one page after another
   */
  async list(
    accountId: number,
    filter: RedemptionFilter,
    externalRef: string | null,
    readFrom: DatabaseChoice = (work) => work(this.pool),
  ): Promise<(range: PageRange) => Promise<DetailedEntry[]>> {
    const { tail, end } = await this.history.readTailOfLog(accountId);
    if (externalRef !== null) {
      const used = await this.receipts.find(accountId, externalRef, { tail, end }, ['redeem']);
      const matching = used.filter(({ entry }) => isRedemption(filter, entry)).sort(byAge);
      return ({ after, limit }) =>
        this.history.addDetails(
          matching.filter(({ entry }) => after === null || isOlder(entry, after)).slice(0, limit),
          tail,
        );
    }
    const late = tail.filter(({ entry }) => isRedemption(filter, entry));
    return async (range) => {
      const statement = createRedemptionQuery(ENTRY_COLUMNS, { accountId, end }, filter, range);
      const rows = await readFrom((pool) => query<EntryRow>(pool, statement));
      const { after, limit } = range;
      const entries: EntryWithEvent[] = [
        ...late.filter(({ entry }) => after === null || isOlder(entry, after)),
        ...rows.map((row) => ({ entry: toEntry(row) })),
      ];
      entries.sort(byAge);
      return this.history.addDetails(entries.slice(0, limit), tail, end);
    };
  }
}

/** Sorts the newest first. */
function byAge(one: EntryWithEvent, other: EntryWithEvent): number {
  return isOlder(one.entry, toRedemptionKey(other.entry)) ? 1 : -1;
}
