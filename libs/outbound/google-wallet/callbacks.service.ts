import { Injectable, Logger } from '@nestjs/common';
import { createHash } from 'node:crypto';
import { Pool } from 'pg';
import { Config, type GoogleWallet } from '#configuration/config.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { Passes } from '#outbound/passes/passes.service.js';
import { PassUpdates } from '#outbound/passes/pass-updates.service.js';
import { CallbackKeys } from './callback-keys.client.js';
import { verifyCallback, type Callback } from './callback.js';
import { GoogleObjects } from './google-objects.service.js';
import { parseObjectId } from './google-pass.js';
import { ISSUES } from '#translations/issues.js';

/**
 * Receives callbacks of Google about customers' phones. They are only hints: at times they were missing for months, so
 * nothing but `pass_installed` depends on them.
 */
@Injectable()
export class GoogleCallbacks {
  private readonly log = new Logger('google-wallet');

  constructor(
    private readonly pool: Pool,
    private readonly keys: CallbackKeys,
    private readonly passes: Passes,
    private readonly objects: GoogleObjects,
    private readonly updates: PassUpdates,
    private readonly config: Config,
  ) {}

  /**
   * Applies a callback. A repeated callback changes nothing, and neither does one for a pass of another installation.
   * @throws RejectedError unless Google has signed it for this issuer
   */
  async receive(body: unknown, now: Date): Promise<void> {
    const { google } = this.config;
    if (google === null) throw new NotFoundError('Path');
    const callback = await this.verify(body, google, now);
    if (!callback) {
      throw new RejectedError(
        {
          base: [ISSUES.callback_invalid],
        },
        'validation_failed',
        'Send the callback exactly as Google sent it, before it expires.',
      );
    }
    if (await this.isRecorded(callback)) return;
    await this.apply(callback, google);
    await this.recordNonce(callback);
  }

  private async verify(
    body: unknown,
    { issuerId }: GoogleWallet,
    now: Date,
  ): Promise<Callback | undefined> {
    const callback = verifyCallback(body, await this.keys.get(), issuerId, now);
    if (callback || !(await this.keys.refreshAfterUnknownSignature())) return callback;
    return verifyCallback(body, await this.keys.get(), issuerId, now);
  }

  private async apply({ objectId, eventType }: Callback, google: GoogleWallet): Promise<void> {
    const { issuerId, idSuffix } = google;
    const uuid = parseObjectId(objectId, { issuerId, idSuffix, publicUrl: this.config.publicUrl });
    const card = uuid === undefined ? undefined : await this.passes.findHolder(uuid);
    if (!card) {
      this.log.debug(`a callback for a pass of another installation: ${eventType}`);
      return;
    }
    if (eventType === 'del') return this.passes.markRemoved(card.id, 'google');
    await this.passes.markInstalled(card.id, card.accountId, 'google');
    // Google may have inserted an outdated object from an old link.
    await this.updates.request(
      this.pool,
      await this.objects.findObjectTargets([card.id], this.pool),
      0,
    );
  }

  private async isRecorded({ nonce }: Callback): Promise<boolean> {
    const rows = await query(this.pool, {
      name: 'google_callbacks_find',
      text: 'select from google_callbacks where nonce_hash = $1',
      values: [hashNonce(nonce)],
    });
    return rows.length > 0;
  }

  /** Records the nonce until the callback expires, after which it is refused anyway. */
  private async recordNonce({ nonce, expiresAt }: Callback): Promise<void> {
    await query(this.pool, {
      name: 'google_callbacks_store',
      text: `with expired as (delete from google_callbacks where expires_at < now())
             insert into google_callbacks (nonce_hash, expires_at) values ($1, $2)
             on conflict do nothing`,
      values: [hashNonce(nonce), expiresAt],
    });
  }
}

function hashNonce(nonce: string): Buffer {
  return createHash('sha256').update(nonce).digest();
}
