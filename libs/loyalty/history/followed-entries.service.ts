import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { query } from '#platform/database/connection.js';
import { ActorNames } from './actor-names.service.js';
import type { AuditRow } from './audit-entry.dto.js';
import { parseActor } from './entry.js';
import { formatFollowCursor, type FollowCursor, type FollowedKind } from './follow-cursor.js';
import type { EntryRow } from './history-table.service.js';

const BATCH = 500;

/**
 * By transaction, and none of a transaction that an unfinished one could still precede: an entry may be committed after one
 * with a higher number.
 */
const READ_AUDIT = {
  name: 'followed_audit',
  text: `select tx::text as tx_text, id, account_id, type, actor, channel, request_id, subject,
           host(ip_address) as ip_address, recorded_at
         from audit_log
         where tx < pg_snapshot_xmin(pg_current_snapshot()) and (tx, id) > ($1::xid8, $2::bigint)
         order by tx, id limit ${BATCH}`,
};

/** Numbered in the order of the log, without gaps, by one process at a time. */
const READ_HISTORY = {
  name: 'followed_history',
  text: `select seq, event_id, stream, revision, account_id, name, occurred_at, recorded_at, channel, actor,
           customer_id, customer_card_id, card_id, location_id, reward_id, stamps, balance, reverses
         from history where seq > $1 order by seq limit ${BATCH}`,
};

const FIND_LAST = {
  audit: `select tx::text as tx_text, id from audit_log
          where tx < pg_snapshot_xmin(pg_current_snapshot()) order by tx desc, id desc limit 1`,
  history: 'select seq, event_id from history order by seq desc limit 1',
};

type AuditFeedRow = AuditRow & { tx_text: string; account_id: number | null };

type HistoryFeedRow = Omit<EntryRow, 'position' | 'latest_recorded_at' | 'source'>;

export type FollowedEntry = { cursor: FollowCursor; json: object };

/** Reads the entries of all stores in an order to which nothing is ever added in between, to pass them on. */
@Injectable()
export class FollowedEntries {
  constructor(
    private readonly pool: Pool,
    private readonly names: ActorNames,
  ) {}

  /** Reads the next entries, at most 500. @param after null: from the first on */
  readNext(kind: FollowedKind, after: FollowCursor | null): Promise<FollowedEntry[]> {
    return kind === 'audit' ? this.readAudit(after) : this.readHistory(after);
  }

  /** Finds the last entry so far. */
  async findLast(kind: FollowedKind): Promise<FollowCursor | null> {
    const [row] = await query<{ tx_text: string; id: number; seq: number; event_id: string }>(
      this.pool,
      {
        text: FIND_LAST[kind],
      },
    );
    if (!row) return null;
    return kind === 'audit'
      ? { kind, tx: row.tx_text, id: row.id }
      : { kind, seq: row.seq, eventId: row.event_id };
  }

  /** Tells whether audit entries have transactions that this server has not begun yet: new ones would come before them. */
  async areOfAnotherServer(): Promise<boolean> {
    const [row] = await query<{ is_ahead: boolean }>(this.pool, {
      text: `select coalesce((select tx >= pg_snapshot_xmax(pg_current_snapshot())
                from audit_log order by tx desc limit 1), false) as is_ahead`,
    });
    return row?.is_ahead === true;
  }

  /** Tells whether the entry of a cursor exists at its place: after a restore it may not. */
  async has(cursor: FollowCursor): Promise<boolean> {
    const statement =
      cursor.kind === 'audit'
        ? {
            text: 'select from audit_log where tx = $1::xid8 and id = $2',
            values: [cursor.tx, cursor.id],
          }
        : {
            text: 'select from history where seq = $1 and event_id = $2',
            values: [cursor.seq, cursor.eventId],
          };
    return (await query(this.pool, statement)).length === 1;
  }

  /**
   * Tells whether the entry of a cursor was there once and is not any more, as after a failover that has lost the last
   * commits. New entries may come before it then. The table of the history may be shorter while it is filled again.
   */
  async isLost(cursor: FollowCursor): Promise<boolean> {
    if (cursor.kind === 'audit') return !(await this.has(cursor));
    const others = await query(this.pool, {
      text: 'select from history where seq = $1 and event_id <> $2',
      values: [cursor.seq, cursor.eventId],
    });
    return others.length > 0;
  }

  private async readAudit(after: FollowCursor | null): Promise<FollowedEntry[]> {
    const [tx, id] = after?.kind === 'audit' ? [after.tx, after.id] : ['0', 0];
    const rows = await query<AuditFeedRow>(this.pool, { ...READ_AUDIT, values: [tx, id] });
    const names = await this.names.findNames(rows.map(({ actor }) => actor));
    return rows.map((row, i) => {
      const cursor: FollowCursor = { kind: 'audit', tx: row.tx_text, id: row.id };
      return { cursor, json: toFollowedAuditJson(row, names[i] ?? null, cursor) };
    });
  }

  private async readHistory(after: FollowCursor | null): Promise<FollowedEntry[]> {
    const seq = after?.kind === 'history' ? after.seq : -1;
    const rows = await query<HistoryFeedRow>(this.pool, { ...READ_HISTORY, values: [seq] });
    return rows.map((row) => {
      const cursor: FollowCursor = { kind: 'history', seq: row.seq, eventId: row.event_id };
      return { cursor, json: toFollowedHistoryJson(row, cursor) };
    });
  }
}

function toFollowedAuditJson(row: AuditFeedRow, actorName: string | null, cursor: FollowCursor) {
  return {
    cursor: formatFollowCursor(cursor),
    kind: cursor.kind,
    id: `audit_${row.id}`,
    type: row.type,
    account_id: row.account_id,
    recorded_at: row.recorded_at.toISOString(),
    channel: row.channel,
    actor: { type: row.actor.type, id: row.actor.id, name: actorName },
    request_id: row.request_id,
    ip_address: row.ip_address,
    subject: row.subject,
  };
}

function toFollowedHistoryJson(row: HistoryFeedRow, cursor: FollowCursor) {
  return {
    cursor: formatFollowCursor(cursor),
    kind: cursor.kind,
    id: toPublicEventId(row.event_id),
    type: row.name,
    account_id: row.account_id,
    number: row.seq,
    stream: row.stream,
    revision: row.revision,
    occurred_at: row.occurred_at.toISOString(),
    recorded_at: row.recorded_at.toISOString(),
    channel: row.channel,
    actor: parseActor(row.actor),
    customer_id: row.customer_id,
    customer_card_id: row.customer_card_id,
    card_id: row.card_id,
    location_id: row.location_id,
    reward_id: row.reward_id,
    stamps: row.stamps,
    balance: row.balance,
    reverses: row.reverses === null ? null : toPublicEventId(row.reverses),
  };
}
