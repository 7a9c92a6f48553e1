import { Module } from '@nestjs/common';
import { CardsModule } from '#loyalty/cards/cards.module.js';
import { CardImagesModule } from '#outbound/card-images/card-images.module.js';
import { PostersModule } from '#loyalty/posters/posters.module.js';
import { PosterDocuments } from './poster-documents.service.js';
import { PosterLists } from './poster-lists.service.js';
import { PosterPagesController } from './poster-pages.controller.js';
import { PostersConsoleController } from './posters-console.controller.js';
import { PosterRenderer } from './poster-renderer.service.js';

/** Serves posters on screen and as documents to print. */
@Module({
  imports: [CardsModule, PostersModule, CardImagesModule],
  controllers: [PosterPagesController, PostersConsoleController],
  providers: [PosterDocuments, PosterLists, PosterRenderer],
})
export class PosterPagesModule {}
