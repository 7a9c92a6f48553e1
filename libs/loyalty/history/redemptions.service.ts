import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#platform/database/connection.js';
import type { PageRange } from '#platform/http/page.js';
import type { EntryWithEvent } from './entry.js';
import type { DetailedEntry } from './history-entry.dto.js';
import { toEntry, ENTRY_COLUMNS, type EntryRow } from './history-table.service.js';
import { WINDOWS } from './history-query.js';
import { HistoryService, type DatabaseChoice } from './history.service.js';
import { ReceiptEntries } from './receipt-entries.service.js';
import {
  isOlder,
  isRedemption,
  toRedemptionKey,
  createRedemptionQuery,
  type RedemptionFilter,
  type RedemptionPlace,
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
      const { after, limit } = range;
      const place = after && {
        at: new Date(after[0] ?? 0),
        seq: (await this.history.findLastBefore(after.slice(1))) + 1,
      };
      const rows = await readRedemptions(readFrom, { accountId, end, limit }, filter, place);
      const entries: EntryWithEvent[] = [
        ...late.filter(({ entry }) => after === null || isOlder(entry, after)),
        ...rows.map((row) => ({ entry: toEntry(row) })),
      ];
      entries.sort(byAge);
      return this.history.addDetails(entries.slice(0, limit), tail, end);
    };
  }
}

/** Reads redemptions, newest first, window by window: however few match, no statement takes long. */
export async function readRedemptions(
  readFrom: DatabaseChoice,
  { limit, ...slice }: { accountId: number; end: number; limit: number },
  filter: RedemptionFilter,
  after: RedemptionPlace | null,
): Promise<EntryRow[]> {
  const rows: EntryRow[] = [];
  let place = after;
  for (let window = WINDOWS.first; ; window = WINDOWS.next) {
    const part = { ...slice, limit: limit - rows.length };
    const queries = createRedemptionQuery(ENTRY_COLUMNS, part, filter, place, window);
    rows.push(...(await readFrom((pool) => query<EntryRow>(pool, queries.rows))));
    const { end } = queries;
    if (end === null || rows.length === limit) return rows;
    const [last] = await readFrom((pool) => query<RedemptionPlace>(pool, end));
    if (!last) return rows;
    place = last;
  }
}

/** Sorts the newest first. */
function byAge(one: EntryWithEvent, other: EntryWithEvent): number {
  return isOlder(one.entry, toRedemptionKey(other.entry)) ? 1 : -1;
}
