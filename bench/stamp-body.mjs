import { randomUUID } from 'node:crypto';

/** The same for every service. The note is what Inkpad has to seal. */
export const stampBody = { stamps: 1, note: 'two flat whites and a cinnamon bun, at the bar' };

/** As a till sends it: at its location, each with a receipt number of its own. */
export const createTillBody = (locationId) => ({
  ...stampBody,
  location_id: locationId,
  external_ref: randomUUID(),
});
