import { Module } from '@nestjs/common';
import { CardsModule } from '#cards/cards.module.js';
import { RewardsModule } from '#rewards/rewards.module.js';
import { StripImagesModule } from '#card-images/strip-images.module.js';
import { CardDesigns } from './card-designs.service.js';
import { CardLists } from './card-lists.service.js';
import { CardPagesController } from './card-pages.controller.js';
import { CardPicturesController, CardPreviewsController } from './card-previews.controller.js';
import { PreviewLinks } from './preview-links.service.js';

/** Serves the designer of cards in the console. */
@Module({
  imports: [CardsModule, RewardsModule, StripImagesModule],
  controllers: [CardPagesController, CardPicturesController, CardPreviewsController],
  providers: [CardDesigns, CardLists, PreviewLinks],
})
export class CardPagesModule {}
