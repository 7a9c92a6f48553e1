import { Module } from '@nestjs/common';
import { cardHandlers } from './card.commands.js';
import { CardsController } from './cards.controller.js';
import { CardsService } from './cards.service.js';

@Module({
  controllers: [CardsController],
  providers: [CardsService, ...cardHandlers],
})
export class CardsModule {}
