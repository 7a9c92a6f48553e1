import { Module } from '@nestjs/common';
import { NormalizePhoneHandler } from './phone-normalization.commands.js';
import { PhoneNormalization } from './phone-normalization.service.js';
import { StorePlaces } from './store-places.service.js';

/** Runs in the dispatcher. */
@Module({
  providers: [PhoneNormalization, NormalizePhoneHandler, StorePlaces],
  exports: [PhoneNormalization],
})
export class PhoneNormalizationModule {}
