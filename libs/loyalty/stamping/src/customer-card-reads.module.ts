import { Module } from '@nestjs/common';
import { CustomerCardsService } from './customer-cards.service.js';
import { TemplatesService } from './templates.service.js';

/** For whoever shows customer cards, with or without an API. */
@Module({
  providers: [CustomerCardsService, TemplatesService],
  exports: [CustomerCardsService, TemplatesService],
})
export class CustomerCardReadsModule {}
