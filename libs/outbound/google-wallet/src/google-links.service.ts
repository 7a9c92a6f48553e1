import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#kernel/config.js';
import { pause } from '#kernel/pause.js';
import { isExpired } from '#cards/card.js';
import type { PassContent } from '#passes/pass-content.js';
import { PassContents } from '#passes/pass-contents.service.js';
import { PassImages } from '#passes/pass-images.service.js';
import { PassUpdates } from '#passes/pass-updates.service.js';
import type { CustomerCard } from '#stamping/customer-card.js';
import { LONGEST_SAVE_JWT, saveJwt } from './google-jwt.js';
import { GoogleObjects } from './google-objects.service.js';
import {
  classId,
  loyaltyClass,
  loyaltyObject,
  objectId,
  withoutNulls,
  type GooglePlace,
} from './google-pass.js';
import { GooglePasses } from './google-passes.service.js';

/** How long a customer who opens the link waits for Google to take the pass. */
const PATIENCE_MS = 3_000;
/** Two who open it at the same moment: one waits until the other's request has been answered. */
const BUSY_MS = 100;

type Payload = { loyaltyClasses?: object[]; loyaltyObjects: object[] };

/** Signs links that save a customer card to Google Wallet, and begins to keep the pass up to date. */
@Injectable()
export class GoogleLinks {
  constructor(
    private readonly pool: Pool,
    private readonly contents: PassContents,
    private readonly updates: PassUpdates,
    private readonly objects: GoogleObjects,
    private readonly google: GooglePasses,
    private readonly images: PassImages,
    private readonly config: Config,
  ) {}

  get enabled(): boolean {
    return this.config.google !== null;
  }

  /** @returns undefined where there is nothing to save, and where Google is down and the pass does not fit into a link */
  async saveUrlOf(card: CustomerCard, now: Date): Promise<string | undefined> {
    const { google, publicUrl } = this.config;
    if (google === null) return undefined;
    const { pass, content } = await this.contents.open(card);
    if (content.state === 'void' || isExpired(content, now)) return undefined;
    const place = { issuerId: google.issuerId, idSuffix: google.idSuffix, publicUrl };
    const { hasClass, hasObject } = await this.objects.register(card, pass.noticeTag);
    const isThere = hasObject || (await this.publish(card));
    const payload = isThere
      ? { loyaltyObjects: [idsOf(content, place)] }
      : await this.wholePayload(content, place, hasClass, now);
    const jwt = saveJwt(google.account, payload, new URL(publicUrl).origin, now);
    return jwt.length > LONGEST_SAVE_JWT ? undefined : `${google.saveUrl}/${jwt}`;
  }

  /** @returns false: Google has not taken it in time; the dispatcher goes on trying */
  private async publish({ id, accountId, cardId }: CustomerCard): Promise<boolean> {
    const patience = AbortSignal.timeout(PATIENCE_MS);
    for (;;) {
      const { kind } = await this.google.publishObject(id, 1, patience);
      if (kind === 'done') return true;
      if (kind !== 'busy' || patience.aborted) break;
      await pause(BUSY_MS, patience);
    }
    await this.updates.ask(
      this.pool,
      [
        { channel: 'google_class', target: String(cardId), accountId },
        { channel: 'google_object', target: String(id), accountId },
      ],
      0,
    );
    return false;
  }

  /** Google inserts what it does not have when the customer saves it. */
  private async wholePayload(
    content: PassContent,
    place: GooglePlace,
    hasClass: boolean,
    now: Date,
  ): Promise<Payload> {
    const { logo, strip } = await this.images.linksOf(content);
    const loyaltyObjects = [withoutNulls(loyaltyObject(content, place, strip.hero, now))];
    return hasClass
      ? { loyaltyObjects }
      : { loyaltyObjects, loyaltyClasses: [withoutNulls(loyaltyClass(content, place, logo))] };
  }
}

function idsOf({ uuid, cardId }: PassContent, place: GooglePlace) {
  return { id: objectId(uuid, place), classId: classId(cardId, place) };
}
