import { Module } from '@nestjs/common';
import { LocationsModule } from '#locations/locations.module.js';
import { AddressPlaces } from './address-places.service.js';
import { LocationPagesController } from './location-pages.controller.js';

/** Serves the locations of a store in the console. */
@Module({
  imports: [LocationsModule],
  controllers: [LocationPagesController],
  providers: [AddressPlaces],
})
export class LocationPagesModule {}
