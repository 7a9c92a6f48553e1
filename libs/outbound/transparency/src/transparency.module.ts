import { Module } from '@nestjs/common';
import { CheckpointController } from './checkpoint.controller.js';
import { Checkpoints } from './checkpoints.service.js';
import { Tree } from './tree.service.js';

/** The part that answers requests. */
@Module({ controllers: [CheckpointController], providers: [Checkpoints, Tree] })
export class TransparencyModule {}
