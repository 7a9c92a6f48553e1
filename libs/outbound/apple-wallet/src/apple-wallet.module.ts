import { Module } from '@nestjs/common';
import { AppleCertificate } from './apple-certificate.service.js';

/** The part that answers requests. */
@Module({
  providers: [AppleCertificate],
  exports: [AppleCertificate],
})
export class AppleWalletModule {}

/** The part that tells phones of changes. */
@Module({
  providers: [AppleCertificate],
  exports: [AppleCertificate],
})
export class ApplePushModule {}
