import { Module } from '@nestjs/common';
import { MessagesModule } from '#outbound/messages/messages.module.js';
import { CheckpointFolder } from './checkpoint-folder.service.js';
import { CheckpointSigning } from './checkpoint-signing.service.js';
import { Checkpoints } from './checkpoints.service.js';
import { TransparencyLog } from './transparency-log.subscription.js';
import { Tree } from './tree.service.js';

/** Appends events to the tree and signs it, in the dispatcher. */
@Module({
  imports: [MessagesModule],
  providers: [CheckpointFolder, Checkpoints, CheckpointSigning, TransparencyLog, Tree],
  exports: [CheckpointSigning, TransparencyLog],
})
export class TransparencyLogModule {}
