import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { query } from '#platform/database/connection.js';
import type { JobOutcome } from '#platform/database/job-queue.js';
import { PassContents } from '#outbound/passes/pass-contents.service.js';
import { PassMessages } from '#outbound/passes/pass-messages.service.js';
import { GoogleObjectMessages } from './google-object-messages.service.js';
import { toObjectId } from './google-pass.js';
import { toFailure } from './publication.js';

/** Sends the messages of stores to passes in Google Wallet: with a notification, as far as the quota allows. */
@Injectable()
export class GoogleMessages {
  constructor(
    private readonly pool: Pool,
    private readonly messages: PassMessages,
    private readonly contents: PassContents,
    private readonly objectMessages: GoogleObjectMessages,
    private readonly config: Config,
  ) {}

  /** Sends the last message of the store, unless Google has it already. */
  async send(customerCardId: number, signal: AbortSignal): Promise<JobOutcome> {
    const { google, publicUrl } = this.config;
    const message = await this.messages.find(customerCardId, 'wallet');
    if (google === null || !message) return { kind: 'done' };
    if (message.tag <= (await this.findMessagedTag(customerCardId))) return { kind: 'done' };
    const content = (await this.contents.load([customerCardId])).get(customerCardId);
    if (content?.state === 'valid') {
      const { issuerId, idSuffix } = google;
      const objectId = toObjectId(content.uuid, { issuerId, idSuffix, publicUrl });
      const { id, title, text, tag } = message;
      const { response, isSilent } = await this.objectMessages.add(
        { customerCardId, tag, objectId },
        { id: `message_${id}`, header: title, body: text },
        signal,
      );
      if (response.kind !== 'ok') return toFailure(response, { canRetry: false });
      if (isSilent) await this.recordSilent(customerCardId, id);
    }
    await query(this.pool, {
      name: 'google_objects_messaged',
      text: `update google_objects set messaged_tag = greatest(messaged_tag, $2) where customer_card_id = $1`,
      values: [customerCardId, message.tag],
    });
    return { kind: 'done' };
  }

  /** Records that a message came without a notification, unless the pass is on an iPhone too. */
  private async recordSilent(customerCardId: number, messageId: number): Promise<void> {
    await query(this.pool, {
      name: 'silent_messages_add',
      text: `insert into silent_messages (message_id)
             select $1 where not exists (
               select from apple_registrations r where r.customer_card_id = $2)
             on conflict do nothing`,
      values: [messageId, customerCardId],
    });
  }

  private async findMessagedTag(customerCardId: number): Promise<number> {
    const [row] = await query<{ tag: number }>(this.pool, {
      name: 'google_objects_messaged_tag',
      text: 'select messaged_tag as tag from google_objects where customer_card_id = $1',
      values: [customerCardId],
    });
    return row?.tag ?? Infinity;
  }
}
