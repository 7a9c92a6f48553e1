import { Module } from '@nestjs/common';
import { locationHandlers } from './location.commands.js';
import { LocationsController } from './locations.controller.js';
import { LocationsService } from './locations.service.js';

@Module({
  controllers: [LocationsController],
  providers: [LocationsService, ...locationHandlers],
  exports: [LocationsService],
})
export class LocationsModule {}
