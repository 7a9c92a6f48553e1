import { timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import { getNowMs } from '#platform/kernel/clock.js';
import { fingerprint } from '#platform/kernel/sealing.js';
import { MasterKeys } from '#platform/database/master-keys.js';

/** How long a preview can be seen: it cannot be withdrawn before. */
const VALID_MS = 60 * 60_000;
const TOKEN = /^(\d{1,15})-(\d{1,15})-(\d{13})-([A-Za-z0-9_-]{22})$/;
const MAC_BYTES = 16;

export type PreviewedCard = { accountId: number; cardId: number };

/**
 * Creates and checks links to a preview of a card. A link holds all that it says, so that nothing is stored. A test customer
 * in its place would count in statistics and quotas, and stay in the history.
 */
@Injectable()
export class PreviewLinks {
  constructor(
    private readonly masterKeys: MasterKeys,
    private readonly config: Config,
  ) {}

  create({ accountId, cardId }: PreviewedCard): string {
    const expiresAt = getNowMs() + VALID_MS;
    const mac = this.sign(accountId, cardId, expiresAt).toString('base64url');
    return `${this.config.publicUrl}/card-previews/${accountId}-${cardId}-${expiresAt}-${mac}`;
  }

  /** @returns undefined if the link has expired, or was not created here */
  open(token: string): PreviewedCard | undefined {
    const [, account = '', card = '', at = '', mac = ''] = TOKEN.exec(token) ?? [];
    if (account === '') return undefined;
    const [accountId, cardId, expiresAt] = [Number(account), Number(card), Number(at)];
    const expected = this.sign(accountId, cardId, expiresAt);
    const received = Buffer.from(mac, 'base64url');
    if (received.length !== MAC_BYTES || !timingSafeEqual(received, expected)) return undefined;
    return expiresAt > getNowMs() ? { accountId, cardId } : undefined;
  }

  private sign(...parts: number[]): Buffer {
    const key = this.masterKeys.getDataKey('preview links');
    return fingerprint(key, ...parts).subarray(0, MAC_BYTES);
  }
}
