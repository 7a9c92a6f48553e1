import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#platform/database/connection.js';
import type { ReceiptOperation } from '#loyalty/stamping/receipt-numbers.js';
import { ReceiptUses } from '#loyalty/stamping/receipt-uses.service.js';
import type { EntryWithEvent, Tail } from './entry.js';
import { toEntry, ENTRY_COLUMNS, type EntryRow } from './history-table.service.js';

const BY_EVENT = {
  name: 'receipt_entries_by_event',
  text: `select ${ENTRY_COLUMNS} from history where event_id = any ($1) and seq <= $2
         order by seq desc`,
};

/** Finds entries of the history by receipt number (external_ref): the claims on it lead to its few events. */
@Injectable()
export class ReceiptEntries {
  constructor(
    private readonly pool: Pool,
    private readonly uses: ReceiptUses,
  ) {}

  /**
   * Finds the entries of all events with a receipt number, newest first.
   * @param tail what the table does not have yet
   */
  async find(
    accountId: number,
    externalRef: string,
    { tail, end }: Tail,
    operations?: readonly ReceiptOperation[],
  ): Promise<EntryWithEvent[]> {
    const events = await this.uses.listEvents(accountId, externalRef, operations);
    if (events.length === 0) return [];
    const ids = new Set(events.map(({ id }) => id));
    const late = tail.filter(({ entry }) => ids.has(entry.eventId));
    const rows = await query<EntryRow>(this.pool, { ...BY_EVENT, values: [[...ids], end] });
    return [...late, ...rows.map((row) => ({ entry: toEntry(row) }))];
  }
}
