import { Module } from '@nestjs/common';
import { StampingModule } from '#loyalty/stamping/stamping.module.js';
import { CustomersModule } from '#loyalty/customers/customers.module.js';
import { PassesModule } from '#outbound/passes/passes.module.js';
import { WebCardModule } from '#web/web-card/web-card.module.js';
import { SignupLimits } from './signup-limits.service.js';
import { SignupHolds } from './signup-holds.service.js';
import { SignupController } from './signup.controller.js';
import { SignupPosters } from './signup-posters.service.js';
import { Signups } from './signups.service.js';
import { DecoyCards } from './decoy-cards.service.js';

/** Lets people get a card by themselves, on the page that the codes on posters lead to. */
@Module({
  imports: [StampingModule, CustomersModule, PassesModule, WebCardModule],
  controllers: [SignupController],
  providers: [SignupHolds, SignupLimits, SignupPosters, Signups, DecoyCards],
})
export class SignupModule {}
