import { Module } from '@nestjs/common';
import { CardsModule } from '#cards/cards.module.js';
import { ExportsModule } from '#exports/exports.module.js';
import { ImportsModule } from '#imports/imports.module.js';
import { ImportPagesController } from './import-pages.controller.js';
import { ImportPages } from './import-pages.service.js';
import { TransfersController } from './transfers.controller.js';
import { TransferPages } from './transfer-pages.service.js';

/** Serves the pages of imports and exports in the console. */
@Module({
  imports: [CardsModule, ExportsModule, ImportsModule],
  controllers: [TransfersController, ImportPagesController],
  providers: [ImportPages, TransferPages],
})
export class TransferPagesModule {}
