import { createHmac, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { AppleCredentials } from '#kernel/apple-credentials.js';
import { Config } from '#kernel/config.js';
import { UnavailableError } from '#kernel/errors.js';
import { MasterKeys } from '#database/master-keys.js';
import type { CustomerCard } from '#stamping/customer-card.js';
import { PassContents } from '#passes/pass-contents.service.js';
import type { Pass } from '#passes/passes.service.js';
import { AppleCertificate } from './apple-certificate.service.js';
import { renderApplePass } from './apple-pass.js';
import { findPassErrors } from './pass-json.js';
import { createPassFile, createPassPackage } from './pass-package.js';
import { PassPictures } from './pass-pictures.service.js';
import { createPassSigner, type PassSigner } from './pass-signature.js';

/** Makes passes for Apple Wallet, on request and from the rows as they are. */
@Injectable()
export class ApplePasses {
  private signer: { credentials: AppleCredentials; sign: PassSigner } | undefined;

  constructor(
    private readonly config: Config,
    private readonly keys: MasterKeys,
    private readonly certificate: AppleCertificate,
    private readonly contents: PassContents,
    private readonly passPictures: PassPictures,
  ) {}

  /** Otherwise the links lead to the web card. */
  get isEnabled(): boolean {
    return this.certificate.credentials !== null;
  }

  /** @property pass as it was before its content was read, so never newer than the bytes */
  async issue(customerCard: CustomerCard): Promise<{ bytes: Buffer; pass: Pass }> {
    const { credentials } = this.certificate;
    if (credentials === null) {
      throw new UnavailableError('Passes for Apple Wallet cannot be signed at present');
    }
    const { pass, content } = await this.contents.open(customerCard);
    const now = new Date();
    const issuer = {
      passTypeId: credentials.passTypeId,
      teamId: credentials.teamId,
      webServiceUrl: `${this.config.publicUrl}/wallet/apple`,
      token: this.deriveToken(customerCard.uuid),
    };
    const json = renderApplePass(content, pass, issuer, now);
    const errors = findPassErrors(json);
    // A phone would refuse it without a word.
    if (errors.length > 0) throw new Error(`pass ${customerCard.id}: ${errors.join('; ')}`);
    const files = [
      createPassFile('pass.json', Buffer.from(JSON.stringify(json))),
      ...(await this.passPictures.getFiles(content)),
    ];
    return { bytes: await createPassPackage(files, this.getSigner(credentials), now), pass };
  }

  /** In constant time. */
  isValidToken(uuid: string, token: string): boolean {
    const expected = Buffer.from(this.deriveToken(uuid));
    const actual = Buffer.from(token);
    return actual.length === expected.length && timingSafeEqual(actual, expected);
  }

  /**
   * Derived, so that nothing is stored; its key is a data key, which stays when the master key is changed, since the
   * passes on phones carry it for years.
   */
  private deriveToken(uuid: string): string {
    const key = this.keys.dataKey('apple passes');
    return createHmac('sha256', key).update(uuid.toLowerCase()).digest('base64url');
  }

  private getSigner(credentials: AppleCredentials): PassSigner {
    if (this.signer?.credentials !== credentials) {
      this.signer = { credentials, sign: createPassSigner(credentials) };
    }
    return this.signer.sign;
  }
}
