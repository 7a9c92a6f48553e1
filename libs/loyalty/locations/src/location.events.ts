export type LocationAttributes = { name: string; address: string };

export type LocationCreated = {
  type: 'LocationCreated';
  data: { id: number; accountId: number } & LocationAttributes;
};
/** A changed address invalidates the coordinates. */
export type LocationUpdated = { type: 'LocationUpdated'; data: Partial<LocationAttributes> };
export type LocationDeleted = { type: 'LocationDeleted'; data: Record<string, never> };

export type LocationEvent = LocationCreated | LocationUpdated | LocationDeleted;
