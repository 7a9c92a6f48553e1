import { Module } from '@nestjs/common';
import { ClaimHolders } from './claim-holders.service.js';
import { CustomerCardsService } from './customer-cards.service.js';
import { TemplatesService } from './templates.service.js';

/** For modules that show customer cards, with or without an API. */
@Module({
  providers: [ClaimHolders, CustomerCardsService, TemplatesService],
  exports: [ClaimHolders, CustomerCardsService, TemplatesService],
})
export class CustomerCardReadsModule {}
