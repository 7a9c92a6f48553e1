import { VERSION } from '#platform/kernel/version.js';

/** Names this service to the servers of vendors and to the outgoing proxy, so that either can allow it. */
export const USER_AGENT = `Inkpad/${VERSION}`;
