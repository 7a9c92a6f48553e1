import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { pause } from '#platform/kernel/pause.js';
import { isExpired } from '#loyalty/cards/card.js';
import type { PassContent } from '#outbound/passes/pass-content.js';
import { PassContents } from '#outbound/passes/pass-contents.service.js';
import { PassImages } from '#outbound/passes/pass-images.service.js';
import { PassUpdates } from '#outbound/passes/pass-updates.service.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';
import { MAX_SAVE_JWT_LENGTH, createSaveJwt } from './google-jwt.js';
import { GoogleObjects } from './google-objects.service.js';
import {
  toClassId,
  renderLoyaltyClass,
  renderLoyaltyObject,
  toObjectId,
  withoutNulls,
  type GoogleInstallation,
} from './google-pass.js';
import { GooglePasses } from './google-passes.service.js';

/** How long a customer who opens the link waits until Google has the pass. */
const PUBLISH_TIMEOUT_MS = 3_000;
/** When two requests publish the same pass at once, one waits for the other. */
const BUSY_RETRY_MS = 100;

type Payload = { loyaltyClasses?: object[]; loyaltyObjects: object[] };

/** Signs links that save a customer card to Google Wallet, and registers the pass for updates. */
@Injectable()
export class GoogleLinks {
  constructor(
    private readonly pool: Pool,
    private readonly contents: PassContents,
    private readonly updates: PassUpdates,
    private readonly objects: GoogleObjects,
    private readonly googlePasses: GooglePasses,
    private readonly images: PassImages,
    private readonly config: Config,
  ) {}

  get isEnabled(): boolean {
    return this.config.google !== null;
  }

  /**
   * Creates the link that saves a pass.
   * @returns undefined when there is nothing to save, or when Google is down and the pass does not fit into a link
   */
  async findSaveUrl(card: CustomerCard, now: Date): Promise<string | undefined> {
    const { google, publicUrl } = this.config;
    if (google === null) return undefined;
    const { pass, content } = await this.contents.open(card);
    if (content.state === 'void' || isExpired(content, now)) return undefined;
    const installation = { issuerId: google.issuerId, idSuffix: google.idSuffix, publicUrl };
    const { hasClass, hasObject } = await this.objects.register(card, pass.notificationTag);
    const isPublished = hasObject || (await this.publish(card));
    const payload = isPublished
      ? { loyaltyObjects: [toIds(content, installation)] }
      : await this.renderPayload(content, installation, hasClass, now);
    const jwt = await createSaveJwt(google.account, payload, new URL(publicUrl).origin, now);
    return jwt.length > MAX_SAVE_JWT_LENGTH ? undefined : `${google.saveUrl}/${jwt}`;
  }

  /** Sends the pass to Google. @returns false when that took too long; the dispatcher keeps trying */
  private async publish({ id, accountId, cardId }: CustomerCard): Promise<boolean> {
    const timeout = AbortSignal.timeout(PUBLISH_TIMEOUT_MS);
    for (;;) {
      const { kind } = await this.googlePasses.publishObject(id, 1, timeout);
      if (kind === 'done') return true;
      if (kind !== 'busy' || timeout.aborted) break;
      await pause(BUSY_RETRY_MS, timeout);
    }
    await this.updates.request(
      this.pool,
      [
        { channel: 'google_class', target: String(cardId), accountId },
        { channel: 'google_object', target: String(id), accountId },
      ],
      0,
    );
    return false;
  }

  /** Renders the whole pass into the link: Google inserts it when the customer saves it. */
  private async renderPayload(
    content: PassContent,
    installation: GoogleInstallation,
    hasClass: boolean,
    now: Date,
  ): Promise<Payload> {
    const { logo, strip } = await this.images.createLinks(content);
    const loyaltyObjects = [
      withoutNulls(renderLoyaltyObject(content, installation, strip.hero, now)),
    ];
    return hasClass
      ? { loyaltyObjects }
      : {
          loyaltyObjects,
          loyaltyClasses: [withoutNulls(renderLoyaltyClass(content, installation, logo))],
        };
  }
}

function toIds({ uuid, cardId }: PassContent, installation: GoogleInstallation) {
  return { id: toObjectId(uuid, installation), classId: toClassId(cardId, installation) };
}
