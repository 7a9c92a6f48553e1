import { createHmac, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { AppleCredentials } from '#configuration/apple-credentials.js';
import { Config } from '#configuration/config.js';
import { getNow } from '#platform/kernel/clock.js';
import { UnavailableError } from '#platform/kernel/errors.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';
import { PassContents } from '#outbound/passes/pass-contents.service.js';
import { PassMessages } from '#outbound/passes/pass-messages.service.js';
import type { Pass } from '#outbound/passes/passes.service.js';
import { AppleCertificate } from './apple-certificate.service.js';
import { addMessage } from './apple-message.js';
import { renderApplePass } from './apple-pass.js';
import { findPassErrors } from './pass-json.js';
import { createPassFile, createPassPackage } from './pass-package.js';
import { findPngWidth, PassPictures } from './pass-pictures.service.js';
import { createPassSigner, type PassSigner } from './pass-signature.js';

/** Issues passes for Apple Wallet on request, from the current read models. */
@Injectable()
export class ApplePasses {
  private signer: { credentials: AppleCredentials; sign: PassSigner } | undefined;

  constructor(
    private readonly config: Config,
    private readonly keys: MasterKeys,
    private readonly certificate: AppleCertificate,
    private readonly contents: PassContents,
    private readonly messages: PassMessages,
    private readonly passPictures: PassPictures,
  ) {}

  /** Tells whether passes can be issued. Otherwise links lead to the web card. */
  get isEnabled(): boolean {
    return this.certificate.credentials !== null;
  }

  /** Issues a signed pass. `pass` was read before the content, so it is never newer than the bytes. */
  async issue(customerCard: CustomerCard): Promise<{ bytes: Buffer; pass: Pass }> {
    const { credentials } = this.certificate;
    if (credentials === null) {
      throw new UnavailableError('Passes for Apple Wallet cannot be signed at present');
    }
    const { pass, content } = await this.contents.open(customerCard);
    const message = await this.messages.find(customerCard.id, 'wallet');
    const now = getNow();
    const pictures = await this.passPictures.getFiles(content);
    const issuer = {
      publicUrl: this.config.publicUrl,
      logoWidth: findPngWidth(pictures.find(({ name }) => name === 'logo.png')?.bytes),
      passTypeId: credentials.passTypeId,
      teamId: credentials.teamId,
      webServiceUrl: `${this.config.publicUrl}/wallet/apple`,
      token: this.deriveToken(customerCard.uuid),
    };
    const rendered = renderApplePass(content, pass, issuer, now);
    const { notificationTag } = pass;
    const { timeZone, locale, addressForm } = content;
    const json = message
      ? addMessage(rendered, message, {
          notificationTag,
          timeZone,
          locale,
          addressForm,
          page: `${this.config.publicUrl}/passes/${customerCard.uuid}`,
        })
      : rendered;
    const errors = findPassErrors(json);
    // A phone would refuse it without an error message.
    if (errors.length > 0) throw new Error(`pass ${customerCard.id}: ${errors.join('; ')}`);
    const files = [createPassFile('pass.json', Buffer.from(JSON.stringify(json))), ...pictures];
    return { bytes: await createPassPackage(files, this.getSigner(credentials), now), pass };
  }

  /** Tells whether a token is that of the pass, in constant time. */
  isValidToken(uuid: string, token: string): boolean {
    const expected = Buffer.from(this.deriveToken(uuid));
    const actual = Buffer.from(token);
    return actual.length === expected.length && timingSafeEqual(actual, expected);
  }

  /**
   * Derives the authentication token of a pass, so that nothing is stored. Its key is a data key, which survives a
   * change of the master key, because passes on phones carry the token for years.
   */
  private deriveToken(uuid: string): string {
    const key = this.keys.getDataKey('apple passes');
    return createHmac('sha256', key).update(uuid.toLowerCase()).digest('base64url');
  }

  private getSigner(credentials: AppleCredentials): PassSigner {
    if (this.signer?.credentials !== credentials) {
      this.signer = { credentials, sign: createPassSigner(credentials) };
    }
    return this.signer.sign;
  }
}
