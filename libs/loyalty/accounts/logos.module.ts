import { Module } from '@nestjs/common';
import { CardsModule } from '#loyalty/cards/cards.module.js';
import { LogosController } from './logos.controller.js';

/** Takes the logos of stores, in the api. */
@Module({
  imports: [CardsModule],
  controllers: [LogosController],
})
export class LogosModule {}
