import { Module } from '@nestjs/common';
import { PassesModule } from '#outbound/passes/passes.module.js';
import { AppleCertificate } from './apple-certificate.service.js';
import { AppleDevices } from './apple-devices.service.js';
import { ApplePasses } from './apple-passes.service.js';
import { ApplePushes } from './apple-pushes.service.js';
import { CardImagesModule } from '#outbound/card-images/card-images.module.js';
import { PassPictures } from './pass-pictures.service.js';
import { PasskitController } from './passkit.controller.js';

/** Serves requests, in the api. */
@Module({
  imports: [PassesModule, CardImagesModule],
  controllers: [PasskitController],
  providers: [AppleCertificate, AppleDevices, ApplePasses, PassPictures],
  exports: [AppleCertificate, ApplePasses],
})
export class AppleWalletModule {}

/** Pushes changes to phones, in the dispatcher. */
@Module({
  imports: [PassesModule],
  providers: [AppleCertificate, AppleDevices, ApplePushes],
  exports: [AppleCertificate, ApplePushes],
})
export class ApplePushModule {}
