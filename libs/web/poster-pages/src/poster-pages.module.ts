import { Module } from '@nestjs/common';
import { PostersModule } from '#posters/posters.module.js';
import { PosterDocuments } from './poster-documents.service.js';
import { PosterFonts } from './poster-fonts.service.js';
import { PosterPagesController } from './poster-pages.controller.js';
import { PostersConsoleController } from './posters-console.controller.js';
import { PosterRenderer } from './poster-renderer.service.js';

/** Serves posters on screen and as documents to print. */
@Module({
  imports: [PostersModule],
  controllers: [PosterPagesController, PostersConsoleController],
  providers: [PosterDocuments, PosterFonts, PosterRenderer],
})
export class PosterPagesModule {}
