import { Module } from '@nestjs/common';
import { rewardHandlers } from './reward.commands.js';
import { RewardsController } from './rewards.controller.js';
import { RewardsService } from './rewards.service.js';

@Module({
  controllers: [RewardsController],
  providers: [RewardsService, ...rewardHandlers],
  exports: [RewardsService],
})
export class RewardsModule {}
