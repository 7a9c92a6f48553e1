import { Module } from '@nestjs/common';
import { NormalizePhoneHandler } from './phone-normalization.commands.js';
import { PhoneNormalization } from './phone-normalization.service.js';
import { StoreRegions } from './store-regions.service.js';

/** Runs in the dispatcher. */
@Module({
  providers: [PhoneNormalization, NormalizePhoneHandler, StoreRegions],
  exports: [PhoneNormalization],
})
export class PhoneNormalizationModule {}
