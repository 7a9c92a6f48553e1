import { Module } from '@nestjs/common';
import { PassContents } from './pass-contents.service.js';
import { Passes } from './passes.service.js';
import { PassUpdates } from './pass-updates.service.js';

/** What the forms of a pass have in common, with or without an API. */
@Module({
  providers: [PassContents, Passes, PassUpdates],
  exports: [PassContents, Passes, PassUpdates],
})
export class PassesModule {}
