import { IsObject } from 'class-validator';
import { Field, NumberField, type FieldOptions } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { PageQuery, UpdatedSinceField } from '#platform/http/page.js';
import {
  derive,
  field,
  ID,
  pick,
  TIMES,
  type FieldsOf,
  type Showing,
} from '#platform/http/resource-fields.js';
import { ObjectsProperty, OneOfProperty, TextProperty } from '#platform/http/response-fields.js';
import { isPrecise, type Location, type NewLocation } from './location.js';
import { ISSUES } from '#translations/issues.js';

const LATITUDE = { min: -90, max: 90, example: 53.5503, description: 'Degrees north.' };
const LONGITUDE = { min: -180, max: 180, example: 9.9929, description: 'Degrees east.' };

@Dto('Pin')
export class PinDto {
  @NumberField(LATITUDE) declare readonly latitude: number;
  @NumberField(LONGITUDE) declare readonly longitude: number;
}

const FIELDS = {
  name: field.text({ example: 'Old Town', description: 'The name.' }),
  address: field.text({
    max: 500,
    example: 'Marktplatz 1, 20095 Hamburg, Germany',
    description: 'The postal address, in one line.',
  }),
  pin: field.request<PinDto | null>(
    PinField({
      optional: true,
      description: 'The exact position of the shop; null: geocode the address',
    }),
    PinField({
      clearable: true,
      description: 'The exact position of the shop; null removes the pin',
    }),
  ),
} satisfies FieldsOf<NewLocation>;

const LOCATION_WARNINGS = ['pin_missing'] as const;
const PIN_MISSING =
  'No card shows up near this location, because its exact position is not known. Set its pin.';

@Dto('LocationWarning')
class LocationWarningJson {
  @OneOfProperty(LOCATION_WARNINGS, { example: 'pin_missing', description: 'What it is about.' })
  declare readonly code: (typeof LOCATION_WARNINGS)[number];
  @TextProperty({ example: PIN_MISSING, description: 'What is wrong, and what to do.' })
  declare readonly message: string;
}

const RESPONSE = {
  id: ID,
  account_id: field.integer({ description: 'The store.' }),
  ...pick(FIELDS, 'name', 'address'),
  latitude: field.number({
    ...LATITUDE,
    optional: true,
    description: 'Degrees north; null until the address was found.',
  }),
  longitude: field.number({
    ...LONGITUDE,
    optional: true,
    description: 'Degrees east; null until the address was found.',
  }),
  geocode_status: field.oneOf(['pending', 'ok', 'not_found', 'failed'], {
    example: 'ok',
    description: 'The result of geocoding the address; ok has coordinates',
  }),
  precision: field.oneOf(['manual', 'rooftop', 'street', 'postcode', 'city'], {
    optional: true,
    example: 'rooftop',
    description:
      'The precision of the coordinates: manual is the pin, rooftop the building. Wallet passes hold coordinates of manual, rooftop and street alone',
  }),
  warnings: field.response<LocationWarningJson[]>(
    ObjectsProperty(() => LocationWarningJson, {
      description: 'Why no card shows up near the location; empty if cards do.',
    }),
  ),
  ...TIMES,
} satisfies Showing<Omit<typeof FIELDS, 'pin'>>;

@Dto('LocationInput', { wrapper: 'location', bare: true })
export class CreateLocationDto extends derive.input(FIELDS) {}

@Dto('LocationChanges', { wrapper: 'location', bare: true })
export class UpdateLocationDto extends derive.changes(FIELDS) {}

@Dto('LocationListQuery')
export class LocationListQuery extends PageQuery {
  @UpdatedSinceField() declare readonly updated_since: Date | null;
}

@Dto('Location')
export class LocationJson extends derive.response(RESPONSE) {}

export const toLocationAttributes = derive.toAttributes(FIELDS);

const renderLocation = derive.toJsonWith(RESPONSE);

export function toLocationJson(location: Location): LocationJson {
  return renderLocation(location, {
    warnings: isPrecise(location.precision) ? [] : [{ code: 'pin_missing', message: PIN_MISSING }],
  });
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
  const validators = [IsObject({ context: ISSUES.not_object })];
  return Field({ schema, validators, nested: { dto: () => PinDto } }, options);
}
