export const ADDRESS_LINK_HOURS = 24;

/** @property taken another user has the address, and the link would be refused */
export type WantedAddress = { name: string; email: string; token: string; taken: boolean };

export type ChangedAddress = { name: string; former: string; email: string };
