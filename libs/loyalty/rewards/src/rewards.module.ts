import { Module } from '@nestjs/common';
import { CqrsModule } from '@nestjs/cqrs';
import { rewardHandlers } from './reward.commands.js';
import { RewardsController } from './rewards.controller.js';
import { RewardsService } from './rewards.service.js';

@Module({
  imports: [CqrsModule],
  controllers: [RewardsController],
  providers: [RewardsService, ...rewardHandlers],
})
export class RewardsModule {}
