import { Injectable, Logger } from '@nestjs/common';
import { timingSafeEqual } from 'node:crypto';
import { Pool } from 'pg';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import type { AdminCaller } from '#platform/http/caller.js';
import { hashToken, hasValidChecksum } from '#identity/token.js';

/** Begins every token of the admin API, and none of a user. */
export const ADMIN_PREFIX = 'inkadm_';
/** Names the data key of their checksums, which is not that of users' tokens. */
export const ADMIN_CHECKSUMS = 'admin token checksums';

const IN_FORCE = 'revoked_at is null and (expires_at is null or expires_at > now())';

const FIND = {
  name: 'admin_tokens_find',
  text: `select id, name, sha256, read_only,
           coalesce(last_used_at < now() - interval '1 minute', true) as is_due
         from admin_tokens where sha256 = $1 and ${IN_FORCE}`,
};
const IS_ENABLED = {
  name: 'admin_tokens_any',
  text: `select exists (select from admin_tokens where ${IN_FORCE}) as enabled`,
};
/** Another process may have written the same use; one that is writing it now is not waited for. */
const RECORD_USE = {
  name: 'admin_tokens_use',
  text: `with used as (select id from admin_tokens where id = $1 for no key update skip locked)
         update admin_tokens a set last_used_at = now() from used where a.id = used.id`,
};

type TokenRow = { id: number; name: string; sha256: Buffer; read_only: boolean; is_due: boolean };

export type ListedAdminToken = {
  admin_token_id: number;
  name: string;
  read_only: boolean;
  created_at: Date;
  expires_at: Date | null;
  last_used_at: Date | null;
  revoked_at: Date | null;
};

/**
 * Finds tokens of the admin API. Nothing is cached: there are few requests, and a revoked token ends at once in every
 * process. The checksum reveals tokens that were not created here, so that invented ones cause no lookup.
 */
@Injectable()
export class AdminTokens {
  private readonly log = new Logger(AdminTokens.name);

  constructor(
    private readonly pool: Pool,
    private readonly keys: MasterKeys,
  ) {}

  /** @returns undefined for a token that is not in force, or none of the admin API */
  async authenticate(token: string): Promise<AdminCaller | undefined> {
    if (!hasValidChecksum(token, this.keys.getDataKey(ADMIN_CHECKSUMS), ADMIN_PREFIX)) {
      return undefined;
    }
    const sha256 = hashToken(token);
    const [row] = await query<TokenRow>(this.pool, { ...FIND, values: [sha256] });
    if (!row || !timingSafeEqual(row.sha256, sha256)) return undefined;
    if (row.is_due) await this.recordUse(row.id);
    return { tokenId: row.id, name: row.name, isReadOnly: row.read_only };
  }

  /** Tells whether a token is in force: without one there is no admin API. */
  async isEnabled(): Promise<boolean> {
    const [row] = await query<{ enabled: boolean }>(this.pool, { ...IS_ENABLED, values: [] });
    return row?.enabled ?? false;
  }

  /** @param isComplete with those that are no longer in force */
  list(isComplete: boolean): Promise<ListedAdminToken[]> {
    return query<ListedAdminToken>(this.pool, {
      text: `select id as admin_token_id, name, read_only, created_at, expires_at, last_used_at,
               revoked_at
             from admin_tokens where $1 or (${IN_FORCE}) order by id`,
      values: [isComplete],
    });
  }

  private async recordUse(id: number): Promise<void> {
    try {
      await query(this.pool, { ...RECORD_USE, values: [id] });
    } catch (error) {
      // The next request tries again.
      this.log.warn(
        `the last use of an admin token could not be written: ${getErrorMessage(error)}`,
      );
    }
  }
}
