import { Module } from '@nestjs/common';
import { CustomerCardReadsModule } from '#loyalty/stamping/customer-card-reads.module.js';
import { PassesModule } from './passes.module.js';
import { WalletStateController } from './wallet-state.controller.js';

/** Shows where passes are installed. */
@Module({
  imports: [PassesModule, CustomerCardReadsModule],
  controllers: [WalletStateController],
})
export class WalletStateModule {}
