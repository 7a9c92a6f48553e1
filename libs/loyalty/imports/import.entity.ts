import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { Actor } from '#platform/kernel/aggregate.js';
import type { FieldIssues } from '#platform/kernel/issues.js';
import type { CapKind } from '#platform/event-store/port/event-store.js';
import type { PlainTable } from '#platform/event-store/read-models/read-models.js';
import type { DateOrder } from './birthdays.js';
import type { CustomerImport, StoredState } from './customer-import.js';
import type { ImportColumn } from './import-columns.js';
import type { ImportFormat } from './import-file.js';
import type { Separator } from './text-encoding.js';
import { ISSUES } from '#translations/issues.js';

/** A stored import. Its file is in a column of its own, which only the check reads. */
@Entity('imports')
export class ImportRecord {
  @PrimaryColumn('bigint') declare id: number;
  @Column('uuid') declare uuid: string;
  @Column('bigint') declare account_id: number;
  @Column('bigint', { nullable: true }) declare card_id: number | null;
  @Column('text') declare state: StoredState;
  @Column('boolean') declare dry_run: boolean;
  @Column('text') declare format: ImportFormat;
  @Column('text') declare encoding: string;
  @Column('text', { nullable: true }) declare separator: Separator | null;
  @Column('jsonb') declare columns: ImportColumn[];
  @Column('text', { nullable: true }) declare date_order: DateOrder | null;
  @Column('int') declare rows_total: number;
  @Column('int') declare rows_done: number;
  @Column('int') declare created: number;
  @Column('int') declare updated: number;
  @Column('int') declare unchanged: number;
  @Column('int') declare failed: number;
  @Column('int') declare undone: number;
  @Column('int') declare refused: number;
  @Column('jsonb', { nullable: true }) declare error: FieldIssues | null;
  /** Who asked for what is done now. */
  @Column('jsonb') declare actor: Actor;
  @Column('timestamptz') declare created_at: Date;
  @Column('timestamptz', { nullable: true }) declare started_at: Date | null;
  @Column('timestamptz', { nullable: true }) declare finished_at: Date | null;
  @Column('timestamptz') declare updated_at: Date;
  @Column('timestamptz', { nullable: true }) declare rows_deleted_at: Date | null;
  /** Null: nothing is to be done. */
  @Column('timestamptz', { nullable: true }) declare due_at: Date | null;
}

export const importTable: PlainTable = { table: 'imports' };

export const importCap: CapKind = {
  table: importTable.table,
  ownerColumn: 'account_id',
  countedCondition: `(r.state in ('running', 'undoing') or r.state = 'checking' and not r.dry_run)`,
  issue: ISSUES.too_many_imports,
  resolution: 'Wait until one is done.',
};

/** Counts the imports that wait for a start, or will. */
export const trialCap: CapKind = {
  ...importCap,
  countedCondition: `(r.state = 'ready' or r.state = 'checking' and r.dry_run)`,
  issue: ISSUES.too_many_waiting_imports,
  resolution: 'Discard those that you do not need (POST …/imports/:id/discard), or start them.',
};

export function toImport(row: ImportRecord): CustomerImport {
  return {
    id: row.id,
    uuid: row.uuid,
    accountId: row.account_id,
    cardId: row.card_id,
    state: row.state,
    dryRun: row.dry_run,
    format: row.format,
    encoding: row.encoding,
    separator: row.separator,
    columns: row.columns,
    dateOrder: row.date_order,
    rowsTotal: row.rows_total,
    counts: {
      done: row.rows_done,
      created: row.created,
      updated: row.updated,
      unchanged: row.unchanged,
      failed: row.failed,
      undone: row.undone,
      refused: row.refused,
    },
    error: row.error,
    actor: row.actor,
    createdAt: row.created_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    updatedAt: row.updated_at,
    rowsDeletedAt: row.rows_deleted_at,
  };
}
