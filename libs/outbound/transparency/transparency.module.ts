import { Module } from '@nestjs/common';
import { HistoryTable } from '#loyalty/history/history-table.service.js';
import { CheckpointController } from './checkpoint.controller.js';
import { Checkpoints } from './checkpoints.service.js';
import { Proofs } from './proofs.service.js';
import { ProofsController } from './proofs.controller.js';
import { Tree } from './tree.service.js';

/** Serves proofs and checkpoints, in the api. */
@Module({
  controllers: [CheckpointController, ProofsController],
  providers: [Checkpoints, HistoryTable, Proofs, Tree],
})
export class TransparencyModule {}
