import { Module } from '@nestjs/common';
import { cardHandlers } from './card.commands.js';
import { CardsController } from './cards.controller.js';
import { CardsService } from './cards.service.js';
import { UploadedPictures } from './uploaded-pictures.service.js';

@Module({
  controllers: [CardsController],
  providers: [CardsService, UploadedPictures, ...cardHandlers],
  exports: [CardsService, UploadedPictures],
})
export class CardsModule {}
