import { Module } from '@nestjs/common';
import { customerCardHandlers } from './customer-card.commands.js';
import { CustomerCardReadsModule } from './customer-card-reads.module.js';
import { CustomerCardsController } from './customer-cards.controller.js';
import { ReceiptsService } from './receipts.service.js';

@Module({
  imports: [CustomerCardReadsModule],
  controllers: [CustomerCardsController],
  providers: [ReceiptsService, ...customerCardHandlers],
  exports: [CustomerCardReadsModule],
})
export class StampingModule {}
