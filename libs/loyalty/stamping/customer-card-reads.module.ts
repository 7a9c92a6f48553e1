import { Module } from '@nestjs/common';
import { ClaimHolders } from './claim-holders.service.js';
import { CustomerCardsService } from './customer-cards.service.js';
import { ReceiptUses } from './receipt-uses.service.js';
import { TemplatesService } from './templates.service.js';

/** For modules that show customer cards, with or without an API. */
@Module({
  providers: [ClaimHolders, CustomerCardsService, ReceiptUses, TemplatesService],
  exports: [ClaimHolders, CustomerCardsService, ReceiptUses, TemplatesService],
})
export class CustomerCardReadsModule {}
