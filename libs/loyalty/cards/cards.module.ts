import { Module } from '@nestjs/common';
import { cardHandlers } from './card.commands.js';
import { CardsController } from './cards.controller.js';
import { CardsService } from './cards.service.js';
import { StripPictures } from './strip-pictures.service.js';

@Module({
  controllers: [CardsController],
  providers: [CardsService, StripPictures, ...cardHandlers],
  exports: [CardsService, StripPictures],
})
export class CardsModule {}
