import { Module } from '@nestjs/common';
import { CqrsModule } from '@nestjs/cqrs';
import { customerCardHandlers } from './customer-card.commands.js';
import { CustomerCardsController } from './customer-cards.controller.js';
import { CustomerCardsService } from './customer-cards.service.js';
import { ReceiptsService } from './receipts.service.js';
import { TemplatesService } from './templates.service.js';

@Module({
  imports: [CqrsModule],
  controllers: [CustomerCardsController],
  providers: [CustomerCardsService, ReceiptsService, TemplatesService, ...customerCardHandlers],
  exports: [CustomerCardsService, TemplatesService],
})
export class StampingModule {}
