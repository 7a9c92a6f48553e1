import { Module } from '@nestjs/common';
import { StripImagesController } from './strip-images.controller.js';
import { StripImages } from './strip-images.service.js';
import { StripRenderer } from './strip-renderer.service.js';

/** Draws and remembers the images that passes, pages and public URLs show. */
@Module({
  providers: [StripImages, StripRenderer],
  exports: [StripImages],
})
export class StripImagesModule {}

/** The part that answers requests. */
@Module({
  imports: [StripImagesModule],
  controllers: [StripImagesController],
})
export class PublicImagesModule {}
