import type { CommandContext } from '#platform/kernel/aggregate.js';
import type { CapKind } from '#platform/event-store/port/event-store.js';
import { Config } from '#configuration/config.js';
import {
  CreateCommand,
  handleChange,
  handleCreation,
  RecordCommand,
  UpdateCommand,
} from '#platform/event-store/commands/record-commands.js';
import {
  location,
  createLocation,
  deleteLocation,
  geocodeLocation,
  updateLocation,
  type Geocoding,
  type LocationChanges,
  type NewLocation,
} from './location.js';
import { toLocationJson, type LocationJson } from './location.dto.js';
import { ISSUES } from '#translations/issues.js';

const locationCap: CapKind = {
  table: location.table,
  ownerColumn: 'account_id',
  countedCondition: 'r.deleted_at is null',
  issue: ISSUES.too_many_locations,
  resolution: 'Delete one first.',
};

export class CreateLocation extends CreateCommand<NewLocation, LocationJson> {}
export class UpdateLocation extends UpdateCommand<LocationChanges, LocationJson> {}
export class DeleteLocation extends RecordCommand<void> {}

/** Records the result of a geocoder for an address, which may have changed meanwhile. */
export class RecordGeocoding extends RecordCommand<void> {
  constructor(
    context: CommandContext,
    id: number,
    readonly address: string,
    readonly result: Geocoding,
    readonly provider: string,
  ) {
    super(context, id);
  }
}

/** Handles the one command that the dispatcher needs, where it is a provider of its own. */
export const RecordGeocodingHandler = handleChange(
  RecordGeocoding,
  location,
  [],
  ({ address, result, provider }) => ({
    decide: (current) => geocodeLocation(current, address, result, provider),
    respond: () => undefined,
  }),
);

export const locationHandlers = [
  handleCreation(
    CreateLocation,
    location,
    [Config],
    ({ context: { accountId }, attributes }, id, { quotas }) => ({
      decide: () => ({
        events: createLocation(id, accountId, attributes),
        cap: { kind: locationCap, owner: accountId, id, max: quotas.locations },
      }),
      respond: ({ state }) => toLocationJson(state),
    }),
  ),
  handleChange(UpdateLocation, location, [], ({ changes }) => ({
    decide: (current) => updateLocation(current, changes),
    respond: ({ state }) => toLocationJson(state),
  })),
  RecordGeocodingHandler,
  handleChange(DeleteLocation, location, [], () => ({
    decide: deleteLocation,
    respond: () => undefined,
  })),
];
