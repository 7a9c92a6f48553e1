import { Module } from '@nestjs/common';
import { CqrsModule } from '@nestjs/cqrs';
import { locationHandlers } from './location.commands.js';
import { LocationsController } from './locations.controller.js';
import { LocationsService } from './locations.service.js';

@Module({
  imports: [CqrsModule],
  controllers: [LocationsController],
  providers: [LocationsService, ...locationHandlers],
})
export class LocationsModule {}
