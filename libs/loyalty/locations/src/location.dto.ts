import { IsObject } from 'class-validator';
import { Field, NumberField, TextField, type FieldOptions } from '#http/fields.js';
import { Dto } from '#http/dtos.js';
import { PageQuery, UpdatedSinceField } from '#http/page.js';
import {
  IntegerProperty,
  NumberProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#http/response-fields.js';
import type { Location, LocationChanges, NewLocation, Precision } from './location.js';

/** Describes the fields that several classes have. */
const DESCRIPTIONS = {
  name: 'The name.',
  address: 'The postal address, in one line.',
};

const PRECISIONS: readonly Precision[] = ['manual', 'rooftop', 'street', 'postcode', 'city'];
const GEOCODE_STATUSES = ['pending', 'ok', 'not_found', 'failed'] as const;

const NAME = { example: 'Old Town' };
const ADDRESS = { max: 500, example: 'Marktplatz 1, 20095 Hamburg, Germany' };

const LATITUDE = { min: -90, max: 90, example: 53.5503, description: 'Degrees north.' };
const LONGITUDE = { min: -180, max: 180, example: 9.9929, description: 'Degrees east.' };

@Dto('Pin')
export class PinDto {
  @NumberField(LATITUDE) declare readonly latitude: number;
  @NumberField(LONGITUDE) declare readonly longitude: number;
}

@Dto('LocationInput', { wrapper: 'location', bare: true })
export class CreateLocationDto {
  @TextField({ ...NAME, description: DESCRIPTIONS.name }) declare readonly name: string;
  @TextField({ ...ADDRESS, description: DESCRIPTIONS.address }) declare readonly address: string;
  @PinField({
    optional: true,
    description: 'The exact position of the shop; null: geocode the address',
  })
  declare readonly pin: PinDto | null;
}

@Dto('LocationChanges', { wrapper: 'location', bare: true })
export class UpdateLocationDto {
  @TextField({ ...NAME, omittable: true, description: DESCRIPTIONS.name })
  declare readonly name?: string;
  @TextField({ ...ADDRESS, omittable: true, description: DESCRIPTIONS.address })
  declare readonly address?: string;
  @PinField({
    clearable: true,
    description: 'The exact position of the shop; null removes the pin',
  })
  declare readonly pin?: PinDto | null;
}

export function toLocationAttributes({ name, address, pin }: CreateLocationDto): NewLocation {
  return { name, address, pin };
}

/** Converts the fields that the request contains, and no others. */
export function toLocationChanges({ name, address, pin }: UpdateLocationDto): LocationChanges {
  return {
    ...(name !== undefined && { name }),
    ...(address !== undefined && { address }),
    ...(pin !== undefined && { pin }),
  };
}

@Dto('LocationListQuery')
export class LocationListQuery extends PageQuery {
  @UpdatedSinceField() declare readonly updated_since: Date | null;
}

@Dto('Location')
export class LocationJson {
  @IntegerProperty({ description: 'The id.' }) declare readonly id: number;
  @IntegerProperty({ description: 'The store.' }) declare readonly account_id: number;
  @TextProperty({ ...NAME, description: DESCRIPTIONS.name }) declare readonly name: string;
  @TextProperty({ example: ADDRESS.example, description: DESCRIPTIONS.address })
  declare readonly address: string;
  @NumberProperty({
    nullable: true,
    example: LATITUDE.example,
    description: 'Degrees north; null until the address was found.',
  })
  declare readonly latitude: number | null;
  @NumberProperty({
    nullable: true,
    example: LONGITUDE.example,
    description: 'Degrees east; null until the address was found.',
  })
  declare readonly longitude: number | null;
  @OneOfProperty(GEOCODE_STATUSES, {
    example: 'ok',
    description: 'The result of geocoding the address; ok has coordinates',
  })
  declare readonly geocode_status: (typeof GEOCODE_STATUSES)[number];
  @OneOfProperty(PRECISIONS, {
    nullable: true,
    example: 'rooftop',
    description:
      'The precision of the coordinates: manual is the pin, rooftop the building. Wallet passes hold coordinates of manual, rooftop and street alone',
  })
  declare readonly precision: Precision | null;
  @TimestampProperty({ description: 'When it was created.' }) declare readonly created_at: string;
  @TimestampProperty({ description: 'When it was last changed.' })
  declare readonly updated_at: string;
}

export function toLocationJson(location: Location): LocationJson {
  return {
    id: location.id,
    account_id: location.accountId,
    name: location.name,
    address: location.address,
    latitude: location.latitude,
    longitude: location.longitude,
    geocode_status: location.geocodeStatus,
    precision: location.precision,
    created_at: location.createdAt,
    updated_at: location.updatedAt,
  };
}

function PinField(options: FieldOptions): PropertyDecorator {
  const degrees = ({ min, max, ...words }: typeof LATITUDE) => ({
    type: 'number',
    minimum: min,
    maximum: max,
    ...words,
  });
  const schema = {
    type: 'object',
    required: ['latitude', 'longitude'],
    properties: { latitude: degrees(LATITUDE), longitude: degrees(LONGITUDE) },
  };
  const validators = [IsObject({ message: 'must be an object' })];
  return Field({ schema, validators, nested: { dto: () => PinDto } }, options);
}
