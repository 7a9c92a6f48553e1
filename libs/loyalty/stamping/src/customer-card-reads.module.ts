import { Module } from '@nestjs/common';
import { CustomerCardsService } from './customer-cards.service.js';
import { TemplatesService } from './templates.service.js';

/** For modules that show customer cards, with or without an API. */
@Module({
  providers: [CustomerCardsService, TemplatesService],
  exports: [CustomerCardsService, TemplatesService],
})
export class CustomerCardReadsModule {}
