import { Module } from '@nestjs/common';
import { CqrsModule } from '@nestjs/cqrs';
import { cardHandlers } from './card.commands.js';
import { CardsController } from './cards.controller.js';
import { CardsService } from './cards.service.js';

@Module({
  imports: [CqrsModule],
  controllers: [CardsController],
  providers: [CardsService, ...cardHandlers],
})
export class CardsModule {}
