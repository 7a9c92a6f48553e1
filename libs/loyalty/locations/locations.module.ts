import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { locationHandlers } from './location.commands.js';
import { locationEntity } from './location.entity.js';
import { LocationsController } from './locations.controller.js';
import { LocationsService } from './locations.service.js';

@Module({
  imports: [TypeOrmModule.forFeature([locationEntity])],
  controllers: [LocationsController],
  providers: [LocationsService, ...locationHandlers],
  exports: [LocationsService],
})
export class LocationsModule {}
