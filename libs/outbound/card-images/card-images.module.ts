import { Module } from '@nestjs/common';
import { CardImagesController } from './card-images.controller.js';
import { LogoRenderer } from './logo-renderer.service.js';
import { CardImages } from './card-images.service.js';
import { StripRenderer } from './strip-renderer.service.js';

/** Draws and stores the images of passes, pages and public URLs. */
@Module({
  providers: [CardImages, StripRenderer, LogoRenderer],
  exports: [CardImages, StripRenderer, LogoRenderer],
})
export class CardImagesModule {}

/** Serves the images, in the api. */
@Module({
  imports: [CardImagesModule],
  controllers: [CardImagesController],
})
export class PublicImagesModule {}
