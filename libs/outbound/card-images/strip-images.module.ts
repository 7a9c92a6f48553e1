import { Module } from '@nestjs/common';
import { StripImagesController } from './strip-images.controller.js';
import { LogoRenderer } from './logo-renderer.service.js';
import { StripImages } from './strip-images.service.js';
import { StripRenderer } from './strip-renderer.service.js';

/** Draws and stores the images of passes, pages and public URLs. */
@Module({
  providers: [StripImages, StripRenderer, LogoRenderer],
  exports: [StripImages, StripRenderer, LogoRenderer],
})
export class StripImagesModule {}

/** Serves the images, in the api. */
@Module({
  imports: [StripImagesModule],
  controllers: [StripImagesController],
})
export class PublicImagesModule {}
