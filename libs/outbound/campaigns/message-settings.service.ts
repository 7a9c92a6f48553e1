import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import { query } from '#platform/database/connection.js';
import { KeyedReads } from '#platform/database/keyed-reads.js';
import { DEFAULT_SETTINGS, type MessageSettings } from './message-settings.js';

type SettingsRow = {
  account_id: number;
  quiet_from: string | null;
  quiet_to: string | null;
  max_per_week: number;
};

const COLUMNS = `account_id, to_char(quiet_from, 'HH24:MI') as quiet_from, to_char(quiet_to, 'HH24:MI') as quiet_to, max_per_week`;
const FIND = {
  name: 'message_settings_find',
  text: `select ${COLUMNS} from message_settings where account_id = any ($1)`,
};

/** Reads and stores how a store writes to its customers. */
@Injectable()
export class MessageSettingsService {
  private readonly settings = new KeyedReads<number, MessageSettings>(async (accountIds) => {
    const rows = await query<SettingsRow>(this.pool, { ...FIND, values: [accountIds] });
    return new Map(rows.map((row) => [row.account_id, toSettings(row)]));
  });

  constructor(private readonly pool: Pool) {}

  async get(accountId: number): Promise<MessageSettings> {
    return (await this.settings.find(accountId)) ?? DEFAULT_SETTINGS;
  }

  /** Locks them against changes by others until the transaction ends. */
  async lock(manager: EntityManager, accountId: number): Promise<MessageSettings> {
    const { quiet, maxPerWeek } = DEFAULT_SETTINGS;
    await query(manager, {
      text: `insert into message_settings (account_id, quiet_from, quiet_to, max_per_week) values ($1, $2, $3, $4)
       on conflict do nothing`,
      values: [accountId, quiet?.from ?? null, quiet?.to ?? null, maxPerWeek],
    });
    const rows = await query<SettingsRow>(manager, `${FIND.text} for update`, [[accountId]]);
    return rows[0] ? toSettings(rows[0]) : DEFAULT_SETTINGS;
  }

  async save(
    manager: EntityManager,
    accountId: number,
    { quiet, maxPerWeek }: MessageSettings,
  ): Promise<void> {
    await query(manager, {
      text: `update message_settings set quiet_from = $2, quiet_to = $3, max_per_week = $4 where account_id = $1`,
      values: [accountId, quiet?.from ?? null, quiet?.to ?? null, maxPerWeek],
    });
  }
}

function toSettings({
  quiet_from: from,
  quiet_to: to,
  max_per_week,
}: SettingsRow): MessageSettings {
  return {
    quiet: from === null || to === null ? null : { from, to },
    maxPerWeek: max_per_week,
  };
}
