import { Module } from '@nestjs/common';
import { CqrsModule } from '@nestjs/cqrs';
import { TypeOrmModule } from '@nestjs/typeorm';
import { locationHandlers } from './location.commands.js';
import { locationEntity } from './location.entity.js';
import { LocationsController } from './locations.controller.js';
import { LocationsService } from './locations.service.js';

@Module({
  imports: [CqrsModule, TypeOrmModule.forFeature([locationEntity])],
  controllers: [LocationsController],
  providers: [LocationsService, ...locationHandlers],
})
export class LocationsModule {}
