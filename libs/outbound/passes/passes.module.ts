import { Module } from '@nestjs/common';
import { StripImagesModule } from '#outbound/card-images/strip-images.module.js';
import { PassImages } from './pass-images.service.js';
import { PassContents } from './pass-contents.service.js';
import { PassMessages } from './pass-messages.service.js';
import { Passes } from './passes.service.js';
import { PassUpdates } from './pass-updates.service.js';

/** Provides what all forms of a pass share, in the api and in the dispatcher. */
@Module({
  imports: [StripImagesModule],
  providers: [PassContents, PassImages, PassMessages, Passes, PassUpdates],
  exports: [PassContents, PassImages, PassMessages, Passes, PassUpdates, StripImagesModule],
})
export class PassesModule {}
