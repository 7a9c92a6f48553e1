import { Module } from '@nestjs/common';
import { RewardsModule } from '#loyalty/rewards/rewards.module.js';
import { BatchController } from './batch.controller.js';
import { BatchesService } from './batches.service.js';
import { ByCodeController } from './by-code.controller.js';
import { correctionHandlers } from './corrections.commands.js';
import { CorrectionsController } from './corrections.controller.js';
import { CorrectionsService } from './corrections.service.js';
import { customerCardHandlers } from './customer-card.commands.js';
import { CustomerCardReadsModule } from './customer-card-reads.module.js';
import { CustomerCardsController } from './customer-cards.controller.js';
import { decoyConfirmationHandlers } from './decoy-confirmation.commands.js';
import { receiptReversalHandlers } from './receipt-reversal.commands.js';
import { ReceiptsController } from './receipts.controller.js';
import { ReceiptsService } from './receipts.service.js';

@Module({
  imports: [CustomerCardReadsModule, RewardsModule],
  controllers: [
    CustomerCardsController,
    ByCodeController,
    CorrectionsController,
    ReceiptsController,
    BatchController,
  ],
  providers: [
    BatchesService,
    ReceiptsService,
    CorrectionsService,
    ...customerCardHandlers,
    ...correctionHandlers,
    ...decoyConfirmationHandlers,
    ...receiptReversalHandlers,
  ],
  exports: [BatchesService, CustomerCardReadsModule],
})
export class StampingModule {}
