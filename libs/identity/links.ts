export const INVITATION_DAYS = 7;
export const ADDRESS_LINK_HOURS = 24;

/** @property isTaken another user has the address, and the link would be refused */
export type AddressLink = { name: string; email: string; token: string; isTaken: boolean };

export type AddressChange = { name: string; former: string; email: string };
