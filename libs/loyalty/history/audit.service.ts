import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#platform/database/connection.js';
import { ActorNames } from './actor-names.service.js';
import {
  toAuditEntryJson,
  type AuditEntryJson,
  type AuditFilter,
  type AuditRow,
} from './audit-entry.dto.js';

/** As in the index on it. */
const ACTOR = "((actor ->> 'type') || ':' || (actor ->> 'id'))";

/** Lists what was done to users, tokens and webhook subscriptions. */
@Injectable()
export class AuditService {
  constructor(
    private readonly pool: Pool,
    private readonly names: ActorNames,
  ) {}

  /**
   * Lists audit entries, newest first.
   * @param accountId null: what was about no store
   * @param before only entries with a lower number
   */
  async list(
    accountId: number | null,
    { type, actor, from, to }: AuditFilter,
    { before, limit }: { before: number | null; limit: number },
  ): Promise<{ id: number; json: AuditEntryJson }[]> {
    const values: unknown[] = [];
    const value = (parameter: unknown) => `$${values.push(parameter)}`;
    const conditions = [
      accountId === null ? 'account_id is null' : `account_id = ${value(accountId)}`,
    ];
    if (type !== null) conditions.push(`type = ${value(type)}`);
    if (actor !== null) conditions.push(`${ACTOR} = ${value(actor)}`);
    if (from !== null) conditions.push(`recorded_at >= ${value(from)}`);
    if (to !== null) conditions.push(`recorded_at < ${value(to)}`);
    if (before !== null) conditions.push(`id < ${value(before)}`);
    const rows = await query<AuditRow>(this.pool, {
      text: `select id, type, actor, channel, request_id, subject, host(ip_address) as ip_address, recorded_at from audit_log
             where ${conditions.join(' and ')} order by id desc limit ${value(limit)}`,
      values,
    });
    const names = await this.names.findNames(rows.map((row) => row.actor));
    return rows.map((row, i) => ({ id: row.id, json: toAuditEntryJson(row, names[i] ?? null) }));
  }
}
