import { z } from 'zod';
import { text, timestamp } from '#http/fields.js';
import type { Location } from './location.js';

const name = text({ example: 'Old Town' });
const address = text({ max: 500, example: 'Marktplatz 1, 20095 Hamburg, Germany' });

export const createLocationDto = z.object({ name, address }).meta({ id: 'LocationInput' });

export const updateLocationDto = z
  .object({ name: name.optional(), address: address.optional() })
  .meta({ id: 'LocationChanges' });

export const locationAnswer = z
  .object({
    id: z.int(),
    account_id: z.int(),
    name: z.string().meta({ example: 'Old Town' }),
    address: z.string().meta({ example: 'Marktplatz 1, 20095 Hamburg, Germany' }),
    latitude: z.number().nullable().meta({ example: 53.5503 }),
    longitude: z.number().nullable().meta({ example: 9.9929 }),
    geocode_status: z
      .enum(['pending', 'ok', 'not_found', 'failed'])
      .meta({ example: 'ok' })
      .describe('What looking the address up has come to; coordinates come with ok'),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'Location' });

export type LocationJson = z.infer<typeof locationAnswer>;

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
