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
import { applePass } from './apple-pass.js';
import { passFaults } from './pass-json.js';
import { passFile, passPackage } from './pass-package.js';
import { PassPictures } from './pass-pictures.service.js';
import { passSigner, type PassSigner } from './pass-signature.js';

/** Makes passes for Apple Wallet, on request and from the rows as they are. */
@Injectable()
export class ApplePasses {
  private signer: { of: AppleCredentials; sign: PassSigner } | undefined;

  constructor(
    private readonly config: Config,
    private readonly keys: MasterKeys,
    private readonly certificate: AppleCertificate,
    private readonly contents: PassContents,
    private readonly pictures: PassPictures,
  ) {}

  /** Otherwise the links lead to the web card. */
  get enabled(): boolean {
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
      token: this.tokenOf(customerCard.uuid),
    };
    const json = applePass(content, pass, issuer, now);
    const faults = passFaults(json);
    // A phone would refuse it without a word.
    if (faults.length > 0) throw new Error(`pass ${customerCard.id}: ${faults.join('; ')}`);
    const files = [
      passFile('pass.json', Buffer.from(JSON.stringify(json))),
      ...(await this.pictures.filesOf(content)),
    ];
    return { bytes: await passPackage(files, this.signerOf(credentials), now), pass };
  }

  /** In constant time. */
  isTokenOf(uuid: string, given: string): boolean {
    const wanted = Buffer.from(this.tokenOf(uuid));
    const got = Buffer.from(given);
    return got.length === wanted.length && timingSafeEqual(got, wanted);
  }

  /**
   * Derived, so that nothing is stored; its key is a data key, which stays when the master key is changed, since the
   * passes on phones carry it for years.
   */
  private tokenOf(uuid: string): string {
    const key = this.keys.dataKey('apple passes');
    return createHmac('sha256', key).update(uuid.toLowerCase()).digest('base64url');
  }

  private signerOf(credentials: AppleCredentials): PassSigner {
    if (this.signer?.of !== credentials) {
      this.signer = { of: credentials, sign: passSigner(credentials) };
    }
    return this.signer.sign;
  }
}
