import { Module } from '@nestjs/common';
import { CardImagesModule } from '#outbound/card-images/card-images.module.js';
import { PassImages } from './pass-images.service.js';
import { PassContents } from './pass-contents.service.js';
import { PassMessages } from './pass-messages.service.js';
import { Passes } from './passes.service.js';
import { PassUpdates } from './pass-updates.service.js';

/** Provides what all forms of a pass share, in the api and in the dispatcher. */
@Module({
  imports: [CardImagesModule],
  providers: [PassContents, PassImages, PassMessages, Passes, PassUpdates],
  exports: [PassContents, PassImages, PassMessages, Passes, PassUpdates, CardImagesModule],
})
export class PassesModule {}
