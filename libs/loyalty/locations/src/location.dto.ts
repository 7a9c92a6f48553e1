import { TextField } from '#http/fields.js';
import { Dto } from '#http/fields.pipe.js';
import {
  IntegerProperty,
  NumberProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#http/response-fields.js';
import type { Location } from './location.js';

const GEOCODE_STATUSES = ['pending', 'ok', 'not_found', 'failed'] as const;

const NAME = { example: 'Old Town' };
const ADDRESS = { max: 500, example: 'Marktplatz 1, 20095 Hamburg, Germany' };

@Dto('LocationInput', { wrapper: 'location', bare: true })
export class CreateLocationDto {
  @TextField(NAME) declare readonly name: string;
  @TextField(ADDRESS) declare readonly address: string;
}

@Dto('LocationChanges', { wrapper: 'location', bare: true })
export class UpdateLocationDto {
  @TextField({ ...NAME, omittable: true }) declare readonly name?: string;
  @TextField({ ...ADDRESS, omittable: true }) declare readonly address?: string;
}

@Dto('Location')
export class LocationJson {
  @IntegerProperty() declare readonly id: number;
  @IntegerProperty() declare readonly account_id: number;
  @TextProperty(NAME) declare readonly name: string;
  @TextProperty({ example: ADDRESS.example }) declare readonly address: string;
  @NumberProperty({ nullable: true, example: 53.5503 }) declare readonly latitude: number | null;
  @NumberProperty({ nullable: true, example: 9.9929 }) declare readonly longitude: number | null;
  @OneOfProperty(GEOCODE_STATUSES, {
    example: 'ok',
    description: 'The result of geocoding the address; ok has coordinates',
  })
  declare readonly geocode_status: (typeof GEOCODE_STATUSES)[number];
  @TimestampProperty() declare readonly created_at: string;
  @TimestampProperty() declare readonly updated_at: string;
}

export function locationJson(location: Location): LocationJson {
  return {
    id: location.id,
    account_id: location.accountId,
    name: location.name,
    address: location.address,
    latitude: location.latitude,
    longitude: location.longitude,
    geocode_status: location.geocodeStatus,
    created_at: location.createdAt,
    updated_at: location.updatedAt,
  };
}
