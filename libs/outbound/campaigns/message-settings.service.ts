import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import { query } from '#platform/database/connection.js';
import { KeyedReads } from '#platform/database/keyed-reads.js';
import { releaseMessages } from '#loyalty/accounts/message-release.js';
import { DEFAULT_SETTINGS, type MessageSettings } from './message-settings.js';

const COLUMNS = `account_id as "accountId", max_per_week as "maxPerWeek", case when quiet_from is not null then jsonb_build_object(
    'from', to_char(quiet_from, 'HH24:MI'), 'to', to_char(quiet_to, 'HH24:MI')) end as quiet`;
const FIND = {
  name: 'message_settings_find',
  text: `select ${COLUMNS} from message_settings where account_id = any ($1)`,
};

/** Reads and stores how a store writes to its customers. */
@Injectable()
export class MessageSettingsService {
  private readonly settings = new KeyedReads<number, MessageSettings>(async (accountIds) => {
    const statement = { ...FIND, values: [accountIds] };
    const rows = await query<MessageSettings & { accountId: number }>(this.pool, statement);
    return new Map(rows.map(({ accountId, ...settings }) => [accountId, settings]));
  });

  constructor(private readonly pool: Pool) {}

  async get(accountId: number): Promise<MessageSettings> {
    return (await this.settings.find(accountId)) ?? DEFAULT_SETTINGS;
  }

  /** Gets those by which a message may wait: as a row, since a change of them and the wait lock it. */
  async getStored(accountId: number): Promise<MessageSettings> {
    const settings = await this.settings.find(accountId);
    if (!settings) await storeDefaults(this.pool, accountId);
    return settings ?? DEFAULT_SETTINGS;
  }

  /** Locks them against changes by others until the transaction ends. */
  async lock(manager: EntityManager, accountId: number): Promise<MessageSettings> {
    await storeDefaults(manager, accountId);
    const text = `${FIND.text} for update`;
    const [settings] = await query<MessageSettings>(manager, text, [[accountId]]);
    return settings ?? DEFAULT_SETTINGS;
  }

  /** Makes what waits for the quiet hours due, since they have changed. */
  async release(manager: EntityManager, accountId: number): Promise<void> {
    for (const { text, values } of releaseMessages(accountId)) await query(manager, text, values);
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

async function storeDefaults(by: Pool | EntityManager, accountId: number): Promise<void> {
  const { quiet, maxPerWeek } = DEFAULT_SETTINGS;
  await query(by, {
    text: `insert into message_settings (account_id, quiet_from, quiet_to, max_per_week) values ($1, $2, $3, $4)
     on conflict do nothing`,
    values: [accountId, quiet?.from ?? null, quiet?.to ?? null, maxPerWeek],
  });
}
